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
mod eras;
mod event_names;
mod listening;
mod messages;
mod modern;
mod modern_calls;
mod modern_headers;
mod modern_questions;
mod modern_states;
mod plain;
mod restart;
mod sessions;
mod sharing;
mod streams;
mod support;
mod telling;
mod upstream;
mod upstream_faults;
mod upstream_floods;
mod upstream_modern;
mod upstream_questions;
mod upstream_sessions;
mod upstream_sse;
mod upstream_tls;
