//! What is taken out, what stays, and what holds for every text.

mod forms;
mod kept;
mod objects;
mod properties;
