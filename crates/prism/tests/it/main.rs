//! The whole thing: the real daemon as a process, real children behind it, plain HTTP in front of it. One module per
//! subject; what they share is in `support`.
#![cfg(test)]

mod bad_child;
mod bad_client;
mod bad_start;
mod call;
mod calls;
mod commands;
mod door;
mod ending;
mod eras;
mod event_names;
mod hub;
mod hub_calls;
mod hub_changes;
mod hub_modern;
mod hub_questions;
mod hub_trouble;
mod hub_views;
mod listening;
mod messages;
mod modern;
mod modern_calls;
mod modern_headers;
mod modern_questions;
mod modern_states;
mod plain;
mod probe;
mod probe_faults;
mod restart;
mod sessions;
mod sharing;
mod streams;
mod support;
mod telling;
mod tools;
mod upstream;
mod upstream_faults;
mod upstream_floods;
mod upstream_modern;
mod upstream_questions;
mod upstream_sessions;
mod upstream_sse;
mod upstream_tls;
mod workspace;
mod workspace_served;
