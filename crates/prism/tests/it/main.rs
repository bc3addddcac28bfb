//! The whole thing: the real daemon as a process, real children behind it, plain HTTP in front of it. One module per
//! subject; what they share is in `support`.
#![cfg(test)]

mod bad_child;
mod bad_client;
mod bad_start;
mod calls;
mod commands;
mod door;
mod ending;
mod messages;
mod restart;
mod sessions;
mod sharing;
mod streams;
mod support;
mod telling;
