mod events;
mod run;
mod states;
