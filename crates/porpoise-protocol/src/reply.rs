//! How a statement ends: OK, ERR, EOF, and what OK tells of the session.
//!
//! ```text
//! OK    00 │ affected rows │ last insert id │ status 2 │ warnings 2 │ message │ state changes
//!       FE   the same, as the end of rows, where both ends have DEPRECATE_EOF
//! EOF   FE │ warnings 2 │ status 2                            the end of rows where they have not
//! ERR   FF │ number 2 │ '#' SQLSTATE 5 │ message
//! ```

use crate::Error;
use crate::flags::{Capabilities, Status};
use crate::frame::PacketWriter;
use crate::wire::{Fields, PutFields};

const OK: u8 = 0x00;
const END_OF_ROWS: u8 = 0xFE;
const ERR: u8 = 0xFF;
const LOCAL_INFILE: u8 = 0xFB;

/// An EOF packet is shorter than this; a longer packet that begins with 0xFE is a row.
const EOF_BYTES_MAX: usize = 8;

/// The outcome of a statement without rows, or the end of rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OkPacket<'a> {
    /// Rows changed; with FOUND_ROWS, rows found.
    pub affected_rows: u64,
    /// The first value AUTO_INCREMENT gave.
    pub last_insert_id: u64,
    /// The session's state. [`Status::SESSION_STATE_CHANGED`] is set by what `state` holds.
    pub status: Status,
    /// The number of warnings.
    pub warnings: u16,
    /// Text for people, as `Rows matched: 1  Changed: 1  Warnings: 0`.
    pub message: &'a [u8],
    /// What changed in the session, for clients with SESSION_TRACK: appended by
    /// [`StateChange::put`].
    pub state: &'a [u8],
}

impl<'a> OkPacket<'a> {
    /// Writes it as the outcome of a statement.
    #[inline]
    pub fn write(&self, writer: &mut PacketWriter, capabilities: Capabilities) {
        self.write_as(OK, writer, capabilities);
    }

    /// Writes the end of rows, in the form the two ends have.
    #[inline]
    pub fn write_end_of_rows(&self, writer: &mut PacketWriter, capabilities: Capabilities) {
        if capabilities.contains(Capabilities::DEPRECATE_EOF) {
            self.write_as(END_OF_ROWS, writer, capabilities);
        } else {
            write_eof(writer, self.warnings, self.status);
        }
    }

    fn write_as(&self, first: u8, writer: &mut PacketWriter, capabilities: Capabilities) {
        let tracked = capabilities.contains(Capabilities::SESSION_TRACK);
        let changed = tracked && !self.state.is_empty();
        let mut status = self.status;
        status.set(Status::SESSION_STATE_CHANGED, changed);
        writer.packet(|out| {
            out.push(first);
            out.put_lenenc(self.affected_rows);
            out.put_lenenc(self.last_insert_id);
            out.put_u16(status.bits());
            out.put_u16(self.warnings);
            if changed || !self.message.is_empty() {
                out.put_lenenc_bytes(self.message);
                if changed {
                    out.put_lenenc_bytes(self.state);
                }
            }
        });
    }

    /// Reads it, whichever its first byte.
    pub fn parse(payload: &'a [u8], capabilities: Capabilities) -> Result<Self, Error> {
        let mut fields = Fields::new(payload);
        if !matches!(fields.u8()?, OK | END_OF_ROWS) {
            return Err(Error::Malformed("not an OK packet"));
        }
        let affected_rows = fields.lenenc()?;
        let last_insert_id = fields.lenenc()?;
        let status = Status::from_bits_retain(fields.u16()?);
        let warnings = fields.u16()?;
        let (mut message, mut state) = (&[][..], &[][..]);
        let tracked = capabilities.contains(Capabilities::SESSION_TRACK);
        if !fields.is_empty() {
            message = fields.lenenc_bytes()?;
            if tracked && status.contains(Status::SESSION_STATE_CHANGED) {
                state = fields.lenenc_bytes()?;
            }
        }
        Ok(Self {
            affected_rows,
            last_insert_id,
            status,
            warnings,
            message,
            state,
        })
    }

    /// Each change of the session, up to the first that is malformed.
    pub fn state_changes(&self) -> impl Iterator<Item = StateChange<'a>> + use<'a> {
        let mut fields = Fields::new(self.state);
        std::iter::from_fn(move || StateChange::take(&mut fields).ok())
    }
}

/// Writes an EOF packet; see [`OkPacket::write_end_of_rows`] for the end of rows.
pub fn write_eof(writer: &mut PacketWriter, warnings: u16, status: Status) {
    writer.packet(|out| {
        out.push(END_OF_ROWS);
        out.put_u16(warnings);
        out.put_u16(status.bits());
    });
}

/// One change of the session, as OK reports it to clients with SESSION_TRACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateChange<'a> {
    /// A system variable of `session_track_system_variables` was set.
    SystemVariable {
        /// Its name.
        name: &'a [u8],
        /// Its value as text.
        value: &'a [u8],
    },
    /// The current database.
    Schema(&'a [u8]),
    /// Whether something that `session_track_state_change` watches changed.
    State(bool),
    /// Transactions of this session, as replication names them.
    Gtids(&'a [u8]),
    /// The statements that would begin the same transaction.
    TransactionCharacteristics(&'a [u8]),
    /// Eight letters: `T_______` in a transaction, `________` in none; see
    /// `session_track_transaction_info`.
    TransactionState(&'a [u8]),
    /// A change of a kind not known here.
    Other(u8, &'a [u8]),
}

impl<'a> StateChange<'a> {
    /// Appends it to what [`OkPacket::state`] will hold.
    pub fn put(&self, out: &mut Vec<u8>) {
        let mut entry = Vec::new();
        let kind = match *self {
            Self::SystemVariable { name, value } => {
                entry.put_lenenc_bytes(name);
                entry.put_lenenc_bytes(value);
                0
            }
            Self::Schema(name) => {
                entry.put_lenenc_bytes(name);
                1
            }
            Self::State(changed) => {
                entry.put_lenenc_bytes(if changed { b"1" } else { b"0" });
                2
            }
            Self::Gtids(gtids) => {
                entry.push(0);
                entry.put_lenenc_bytes(gtids);
                3
            }
            Self::TransactionCharacteristics(statements) => {
                entry.put_lenenc_bytes(statements);
                4
            }
            Self::TransactionState(letters) => {
                entry.put_lenenc_bytes(letters);
                5
            }
            Self::Other(kind, bytes) => {
                entry.extend_from_slice(bytes);
                kind
            }
        };
        out.push(kind);
        out.put_lenenc_bytes(&entry);
    }

    fn take(fields: &mut Fields<'a>) -> Result<Self, Error> {
        let kind = fields.u8()?;
        let entry = fields.lenenc_bytes()?;
        let mut fields = Fields::new(entry);
        Ok(match kind {
            0 => Self::SystemVariable {
                name: fields.lenenc_bytes()?,
                value: fields.lenenc_bytes()?,
            },
            1 => Self::Schema(fields.lenenc_bytes()?),
            2 => Self::State(fields.lenenc_bytes()? == b"1"),
            3 => {
                fields.u8()?;
                Self::Gtids(fields.lenenc_bytes()?)
            }
            4 => Self::TransactionCharacteristics(fields.lenenc_bytes()?),
            5 => Self::TransactionState(fields.lenenc_bytes()?),
            _ => Self::Other(kind, entry),
        })
    }
}

/// A statement's failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrPacket<'a> {
    /// MySQL's error number.
    pub number: u16,
    /// Five letters; `HY000` where nothing better fits.
    pub sqlstate: [u8; 5],
    /// What went wrong.
    pub message: &'a [u8],
}

impl<'a> ErrPacket<'a> {
    /// SQLSTATE for errors without one of their own.
    pub const GENERAL: [u8; 5] = *b"HY000";

    /// Writes it. Before the login is read, `capabilities` is empty and clients are told no
    /// SQLSTATE.
    pub fn write(&self, writer: &mut PacketWriter, capabilities: Capabilities) {
        writer.packet(|out| {
            out.push(ERR);
            out.put_u16(self.number);
            if capabilities.contains(Capabilities::PROTOCOL_41) {
                out.push(b'#');
                out.extend_from_slice(&self.sqlstate);
            }
            out.extend_from_slice(self.message);
        });
    }

    /// Reads it; nothing if the packet isn't an ERR.
    pub fn parse(payload: &'a [u8]) -> Result<Option<Self>, Error> {
        let mut fields = Fields::new(payload);
        if fields.u8()? != ERR {
            return Ok(None);
        }
        let number = fields.u16()?;
        let mut sqlstate = Self::GENERAL;
        if let [b'#', rest @ ..] = fields.rest()
            && let Some((state, _)) = rest.split_first_chunk::<5>()
        {
            sqlstate = *state;
            fields.bytes(6)?;
        }
        Ok(Some(Self {
            number,
            sqlstate,
            message: fields.take_rest(),
        }))
    }
}

/// Asks the client for the file of `LOAD DATA LOCAL INFILE`: it sends the content in packets, an
/// empty one last.
pub fn write_local_infile(writer: &mut PacketWriter, file: &[u8]) {
    writer.packet(|out| {
        out.push(LOCAL_INFILE);
        out.extend_from_slice(file);
    });
}

/// The first packet of a reply to a command that may have rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyHead<'a> {
    /// Done, without rows.
    Ok(OkPacket<'a>),
    /// Failed.
    Err(ErrPacket<'a>),
    /// Send this file.
    LocalInfile(&'a [u8]),
    /// So many column definitions follow.
    Columns(u64),
}

impl<'a> ReplyHead<'a> {
    /// Reads it.
    #[inline]
    pub fn parse(payload: &'a [u8], capabilities: Capabilities) -> Result<Self, Error> {
        match payload.first() {
            Some(&OK) => OkPacket::parse(payload, capabilities).map(Self::Ok),
            Some(&ERR) => ErrPacket::parse(payload)?
                .map(Self::Err)
                .ok_or(Error::Malformed("not an ERR packet")),
            Some(&LOCAL_INFILE) => Ok(Self::LocalInfile(&payload[1..])),
            Some(_) => Fields::new(payload).lenenc().map(Self::Columns),
            None => Err(Error::Malformed("an empty reply")),
        }
    }
}

/// A packet among rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowPacket<'a> {
    /// One row, for [`crate::row::TextRow`] or [`crate::row::BinaryRow`] to read.
    Row(&'a [u8]),
    /// No more rows.
    End(OkPacket<'a>),
    /// The statement failed midway.
    Err(ErrPacket<'a>),
}

impl<'a> RowPacket<'a> {
    /// Tells rows from their end. A row may begin with 0xFE too, when it is longer than any end of
    /// rows.
    #[inline]
    pub fn parse(payload: &'a [u8], capabilities: Capabilities) -> Result<Self, Error> {
        match payload.first() {
            Some(&END_OF_ROWS) if is_end_of_rows(payload, capabilities) => {
                parse_end_of_rows(payload, capabilities).map(Self::End)
            }
            Some(&ERR) => ErrPacket::parse(payload)?
                .map(Self::Err)
                .ok_or(Error::Malformed("not an ERR packet")),
            Some(_) => Ok(Self::Row(payload)),
            None => Err(Error::Malformed("an empty row")),
        }
    }
}

/// Whether a packet that may be a row or a column definition is the end of them.
pub fn is_end_of_rows(payload: &[u8], capabilities: Capabilities) -> bool {
    payload.first() == Some(&END_OF_ROWS)
        && if capabilities.contains(Capabilities::DEPRECATE_EOF) {
            payload.len() < crate::frame::PIECE_BYTES_MAX
        } else {
            payload.len() <= EOF_BYTES_MAX
        }
}

/// Reads an end of rows, in the form the two ends have.
pub fn parse_end_of_rows<'a>(
    payload: &'a [u8],
    capabilities: Capabilities,
) -> Result<OkPacket<'a>, Error> {
    if capabilities.contains(Capabilities::DEPRECATE_EOF) {
        return OkPacket::parse(payload, capabilities);
    }
    let mut fields = Fields::new(payload);
    fields.u8()?;
    Ok(OkPacket {
        warnings: fields.u16()?,
        status: Status::from_bits_retain(fields.u16()?),
        ..OkPacket::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Capabilities = Capabilities::PROTOCOL_41;
    const MODERN: Capabilities = PLAIN
        .union(Capabilities::SESSION_TRACK)
        .union(Capabilities::DEPRECATE_EOF);

    fn payload(write: impl FnOnce(&mut PacketWriter)) -> Vec<u8> {
        let mut writer = PacketWriter::new();
        write(&mut writer);
        writer.bytes()[4..].to_vec()
    }

    /// "OK_Packet", "EOF_Packet" and "ERR_Packet" in the protocol documentation.
    #[test]
    fn the_documented_packets_are_written() {
        let ok = OkPacket {
            status: Status::AUTOCOMMIT,
            ..OkPacket::default()
        };
        for capabilities in [PLAIN, MODERN] {
            let bytes = payload(|writer| ok.write(writer, capabilities));
            assert_eq!(bytes, [0, 0, 0, 2, 0, 0, 0]);
        }
        assert_eq!(
            payload(|writer| ok.write_end_of_rows(writer, PLAIN)),
            [0xFE, 0, 0, 2, 0]
        );
        assert_eq!(
            payload(|writer| ok.write_end_of_rows(writer, MODERN)),
            [0xFE, 0, 0, 2, 0, 0, 0]
        );
        let err = ErrPacket {
            number: 1096,
            sqlstate: ErrPacket::GENERAL,
            message: b"No tables used",
        };
        assert_eq!(
            payload(|writer| err.write(writer, PLAIN)),
            b"\xff\x48\x04#HY000No tables used"
        );
        assert_eq!(
            payload(|writer| err.write(writer, Capabilities::empty())),
            b"\xff\x48\x04No tables used"
        );
    }

    #[test]
    fn an_ok_reads_as_it_was_written() {
        let mut state = Vec::new();
        let changes = [
            StateChange::SystemVariable {
                name: b"autocommit",
                value: b"OFF",
            },
            StateChange::Schema(b"shop"),
            StateChange::State(true),
            StateChange::Gtids(b"1-2-3"),
            StateChange::TransactionCharacteristics(b"START TRANSACTION;"),
            StateChange::TransactionState(b"T_______"),
        ];
        for change in &changes {
            change.put(&mut state);
        }
        let ok = OkPacket {
            affected_rows: 70_000,
            last_insert_id: u64::MAX,
            status: Status::IN_TRANS | Status::SESSION_STATE_CHANGED,
            warnings: 3,
            message: b"Rows matched: 1",
            state: &state,
        };
        let bytes = payload(|writer| ok.write(writer, MODERN));
        let read = OkPacket::parse(&bytes, MODERN).unwrap();
        assert_eq!(read, ok);
        assert_eq!(read.state_changes().collect::<Vec<_>>(), changes);
        let bytes = payload(|writer| ok.write(writer, PLAIN));
        let read = OkPacket::parse(&bytes, PLAIN).unwrap();
        assert_eq!(
            (read.message, read.status, read.state),
            (ok.message, Status::IN_TRANS, &[][..])
        );
    }

    /// As servers in use send it. The documentation has the message fill the rest of the packet,
    /// but clients read a length before it, also where the session is not tracked.
    #[test]
    fn a_message_has_its_length_before_it() {
        let ok = OkPacket {
            affected_rows: 2,
            status: Status::AUTOCOMMIT,
            message: b"Records: 2  Duplicates: 0  Warnings: 0",
            ..OkPacket::default()
        };
        let captured = b"\0\x02\0\x02\0\0\0&Records: 2  Duplicates: 0  Warnings: 0";
        assert_eq!(payload(|writer| ok.write(writer, PLAIN)), captured);
        assert_eq!(OkPacket::parse(captured, PLAIN).unwrap(), ok);
    }

    /// "Session State Information" in the protocol documentation: USE test, with the tracker of
    /// schemas.
    #[test]
    fn the_documented_schema_change_is_written() {
        let mut state = Vec::new();
        StateChange::Schema(b"test").put(&mut state);
        assert_eq!(state, b"\x01\x05\x04test");
    }

    #[test]
    fn a_row_that_begins_like_an_end_is_a_row() {
        let mut row = vec![0xFE, 0, 0, 0, 1, 0, 0, 0, 0];
        row.resize(row.len() + 64, b'x');
        assert!(matches!(
            RowPacket::parse(&row, PLAIN),
            Ok(RowPacket::Row(_))
        ));
        assert!(matches!(
            RowPacket::parse(&[0xFE, 0, 0, 2, 0], PLAIN),
            Ok(RowPacket::End(_))
        ));
        assert!(matches!(
            RowPacket::parse(&[0xFE, 0, 0, 2, 0, 0, 0], MODERN),
            Ok(RowPacket::End(_))
        ));
    }

    #[test]
    fn the_kinds_of_first_reply_are_told_apart() {
        assert!(matches!(
            ReplyHead::parse(&[3], PLAIN),
            Ok(ReplyHead::Columns(3))
        ));
        assert_eq!(
            ReplyHead::parse(
                &payload(|writer| write_local_infile(writer, b"/tmp/a")),
                PLAIN
            ),
            Ok(ReplyHead::LocalInfile(b"/tmp/a"))
        );
        assert!(matches!(
            ReplyHead::parse(b"\xff\x48\x04#HY000x", PLAIN),
            Ok(ReplyHead::Err(_))
        ));
        assert!(ReplyHead::parse(&[], PLAIN).is_err());
    }

    proptest::proptest! {
        #[test]
        fn random_replies_never_panic(
            bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..100),
            bits in proptest::num::u32::ANY,
        ) {
            let capabilities = Capabilities::from_bits_retain(bits);
            let _ = ReplyHead::parse(&bytes, capabilities);
            let _ = RowPacket::parse(&bytes, capabilities);
            let _ = crate::column::ColumnDefinition::parse(&bytes);
            let _ = crate::statement::PrepareOk::parse(&bytes);
            if let Ok(ok) = OkPacket::parse(&bytes, capabilities) {
                ok.state_changes().for_each(drop);
            }
        }
    }
}
