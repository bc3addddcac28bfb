//! Any server, offered to any client. `drive` runs core's machines over real pipes and sockets, one task for each link, and
//! finds the right link for a request; `admission` decides on calls before they reach one; `access` is the record of each request.

pub mod access;
pub mod admission;
pub mod admitted;
mod digest;
pub mod drive;
