use super::*;

pub(crate) mod sse;
