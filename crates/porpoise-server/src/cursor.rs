//! Server-side cursors: the rows of a prepared statement, kept for COM_STMT_FETCH.

use std::sync::Arc;

use porpoise_engine::Result;
use porpoise_engine::memory::{Charge, MemoryAccount};
use porpoise_protocol::flags::Status;
use porpoise_protocol::frame::PacketWriter;
use porpoise_protocol::reply::OkPacket;

use crate::reply_writer::{FLUSH_BYTES, ResultSetFormat, send_error};
use crate::send_buffer::SendBuffer;

/// The rows of an open cursor, encoded. Each is a packet whose number is set when it is fetched.
#[derive(Debug, Default)]
pub(crate) struct Cursor {
    rows: PacketWriter,
    /// Where each row begins in the bytes of `rows`.
    starts: Vec<usize>,
    next: usize,
    /// Of the statement that fills it.
    charge: Charge,
}

impl Cursor {
    /// The open row's writer.
    #[inline]
    pub fn rows_mut(&mut self) -> &mut PacketWriter {
        &mut self.rows
    }

    /// A row has been written.
    ///
    /// # Errors
    /// As [`Charge::add`].
    #[inline]
    pub fn end_row(&mut self, account: &Arc<MemoryAccount>) -> Result<()> {
        self.charge.set(account, self.bytes())
    }

    /// How many bytes it takes.
    pub fn bytes(&self) -> usize {
        self.rows.len() + self.starts.len() * size_of::<usize>()
    }

    /// It is its session's from now on, which is charged for it.
    pub fn opened(mut self) -> Cursor {
        self.charge.clear();
        self
    }

    /// Begins a row, which is written to what this returns.
    #[inline]
    pub fn begin_row(&mut self) -> &mut PacketWriter {
        self.starts.push(self.rows.len());
        &mut self.rows
    }

    /// Writes up to `count` more rows, and the end that says whether there are more.
    pub fn fetch(
        &mut self,
        count: u32,
        writer: &mut PacketWriter,
        send_buffer: &mut SendBuffer,
        format: &ResultSetFormat,
    ) -> Result<()> {
        let until = self
            .next
            .saturating_add(count as usize)
            .min(self.starts.len());
        for at in self.next..until {
            let from = self.starts[at];
            let to = self.starts.get(at + 1).copied().unwrap_or(self.rows.len());
            write_renumbered(writer, &self.rows.bytes()[from..to]);
            if writer.len() > FLUSH_BYTES {
                send_buffer
                    .send_all(writer, format.write_timeout)
                    .map_err(send_error)?;
            }
        }
        self.next = until;
        let more = until < self.starts.len();
        let flag = if more {
            Status::CURSOR_EXISTS
        } else {
            Status::LAST_ROW_SENT
        };
        OkPacket {
            status: format.status | flag,
            ..OkPacket::default()
        }
        .write_end_of_rows(writer, format.capabilities);
        Ok(())
    }
}

/// Writes a packet that is framed already, in one piece or several, under a new number.
fn write_renumbered(writer: &mut PacketWriter, mut framed: &[u8]) {
    writer.packet(|out| {
        while let Some((&[a, b, c, _], rest)) = framed.split_first_chunk::<4>() {
            let length = u32::from_le_bytes([a, b, c, 0]) as usize;
            let (piece, rest) = rest.split_at_checked(length).unwrap_or((rest, &[]));
            out.extend_from_slice(piece);
            framed = rest;
        }
    });
}
