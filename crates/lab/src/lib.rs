//! Scenarios, runs, figures, claims; and the demo.
//!
//! What belongs here: everything that drives server, client and network together and draws what came out. What does not: any behaviour of the product itself.
