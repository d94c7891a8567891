//! A network path as a pure model, and what runs it.
//!
//! What belongs here: links, queues, loss, and the drivers that put them between real programs. What does not: congestion control, video, HTTP.
