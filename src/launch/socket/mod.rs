//! A job without a terminal, served on a Unix socket: events one way, commands the other, as JSON lines.
//!
//! The socket is private (0600 in a folder 0700). A client gets the session's header as one line, then every event of
//! the session from its file, which stays the only truth, and then what is appended to it. Detaching leaves the job as
//! it is; a client that is slow, or gone, holds nobody up.

mod client;
mod server;
#[cfg(test)]
mod tests;

pub use client::{Client, list};
pub use server::Server;

use std::io::{self, BufRead, Read};
use std::sync::Arc;

/// How to do something between probes only: it calls its argument once, on the same thread. (The gate of `measure`,
/// which this room cannot name.)
pub type Pass = Arc<dyn Fn(&mut dyn FnMut()) + Send + Sync>;

/// One line without its end, at most `longest` bytes. `None` at the end of the stream; an error for a longer line.
fn read_line(reader: &mut impl BufRead, longest: u64) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    reader.take(longest).read_until(b'\n', &mut line)?;
    match line.pop() {
        Some(b'\n') => Ok(Some(line)),
        // A line cut by the end says nothing that can be trusted.
        Some(_) if (line.len() as u64) + 1 < longest => Ok(None),
        Some(_) => Err(io::Error::new(io::ErrorKind::InvalidData, format!("a line longer than {longest} bytes"))),
        None => Ok(None),
    }
}
