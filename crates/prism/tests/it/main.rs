//! The whole thing: the real daemon as a process, real children behind it, plain HTTP in front of it. One module per
//! subject; what they share is in `support`.
#![cfg(test)]

mod door;
mod ending;
mod messages;
mod restart;
mod sharing;
mod support;
