//! What a connected client asks for: one packet, one command.
//!
//! [`Command::parse`] is the server's end; [`Command::write`] the client's. Everything in a command
//! is borrowed from its packet. A prepared statement's parameters stay encoded in [`Execute`] until
//! [`crate::statement::Parameters`], which remembers their types, reads them.

use crate::Error;
use crate::codes::CommandCode;
use crate::flags::{Capabilities, CursorFlags};
use crate::frame::PacketWriter;
use crate::handshake::ChangeUser;
use crate::statement::{ParameterBlock, QueryAttributes};
use crate::wire::{Fields, PutFields};

/// A command.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Command<'a> {
    /// The client leaves; no reply.
    Quit,
    /// Use a database.
    InitDb(&'a [u8]),
    /// A statement as text.
    Query(Query<'a>),
    /// The columns of a table whose names match; the reply is their definitions, with defaults.
    FieldList {
        /// The table.
        table: &'a [u8],
        /// A LIKE pattern; empty for all.
        pattern: &'a [u8],
    },
    /// Flush what these bits say.
    Refresh(u8),
    /// Stop the server.
    Shutdown,
    /// A line of figures; the reply is the bare text.
    Statistics,
    /// As SHOW PROCESSLIST.
    ProcessInfo,
    /// As KILL.
    ProcessKill(u32),
    /// Write debug facts to the log; the reply is EOF.
    Debug,
    /// The reply is OK.
    Ping,
    /// Log in again.
    ChangeUser(ChangeUser<'a>),
    /// Prepare a statement.
    StmtPrepare(&'a [u8]),
    /// Execute a prepared statement.
    StmtExecute(Execute<'a>),
    /// A piece of one parameter; no reply, the next execute reports errors.
    StmtSendLongData {
        /// The statement.
        statement: u32,
        /// The parameter, from 0.
        parameter: u16,
        /// Appended to what was sent before.
        bytes: &'a [u8],
    },
    /// Forget a prepared statement; no reply.
    StmtClose(u32),
    /// Close its cursor, forget its long data; the reply is OK.
    StmtReset(u32),
    /// Rows from a cursor.
    StmtFetch {
        /// The statement.
        statement: u32,
        /// How many rows at most.
        rows: u32,
    },
    /// Several statements a query on (`true`) or off; the reply is EOF.
    SetMultiStatements(bool),
    /// A session as new; the reply is OK.
    ResetConnection,
    /// A command of MySQL's that isn't for clients, or not for this server: error 1047.
    Unsupported(CommandCode),
}

/// COM_QUERY.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Query<'a> {
    /// One statement; with MULTI_STATEMENTS, maybe several.
    pub sql: &'a [u8],
    /// Named values sent along.
    pub attributes: QueryAttributes<'a>,
}

/// COM_STMT_EXECUTE, its parameters still encoded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Execute<'a> {
    /// The statement; [`Execute::LAST_PREPARED`] for the last one prepared, in MariaDB's dialect.
    pub statement: u32,
    /// Whether a cursor is wanted.
    pub cursor: CursorFlags,
    /// For [`crate::statement::Parameters::decode`].
    pub parameters: ParameterBlock<'a>,
}

impl Execute<'_> {
    /// A statement number that means the last statement prepared, so that prepare and execute go in
    /// one write.
    pub const LAST_PREPARED: u32 = u32::MAX;
}

impl<'a> Command<'a> {
    /// Reads a command. A first byte that no command has is [`Error::UnknownCommand`].
    #[inline]
    pub fn parse(payload: &'a [u8], capabilities: Capabilities) -> Result<Self, Error> {
        use CommandCode as C;
        let mut fields = Fields::new(payload);
        let byte = fields.u8()?;
        let code = C::from_byte(byte).ok_or(Error::UnknownCommand(byte))?;
        Ok(match code {
            C::StmtExecute => {
                let statement = fields.u32()?;
                let cursor = CursorFlags::from_bits_retain(fields.u8()?);
                fields.u32()?;
                Self::StmtExecute(Execute {
                    statement,
                    cursor,
                    parameters: ParameterBlock::new(fields.take_rest(), cursor, capabilities),
                })
            }
            C::Query => Self::Query(Query {
                attributes: QueryAttributes::take(&mut fields, capabilities)?,
                sql: fields.take_rest(),
            }),
            C::Quit => Self::Quit,
            C::InitDb => Self::InitDb(fields.take_rest()),
            C::FieldList => Self::FieldList {
                table: fields.nul_bytes()?,
                pattern: fields.take_rest(),
            },
            C::Refresh => Self::Refresh(fields.u8()?),
            C::Shutdown => Self::Shutdown,
            C::Statistics => Self::Statistics,
            C::ProcessInfo => Self::ProcessInfo,
            C::ProcessKill => Self::ProcessKill(fields.u32()?),
            C::Debug => Self::Debug,
            C::Ping => Self::Ping,
            C::ChangeUser => Self::ChangeUser(ChangeUser::take(&mut fields, capabilities)?),
            C::StmtPrepare => Self::StmtPrepare(fields.take_rest()),
            C::StmtSendLongData => Self::StmtSendLongData {
                statement: fields.u32()?,
                parameter: fields.u16()?,
                bytes: fields.take_rest(),
            },
            C::StmtClose => Self::StmtClose(fields.u32()?),
            C::StmtReset => Self::StmtReset(fields.u32()?),
            C::StmtFetch => Self::StmtFetch {
                statement: fields.u32()?,
                rows: fields.u32()?,
            },
            C::SetOption => Self::SetMultiStatements(match fields.u16()? {
                0 => true,
                1 => false,
                _ => return Err(Error::UnknownCommand(byte)),
            }),
            C::ResetConnection => Self::ResetConnection,
            C::Sleep
            | C::CreateDb
            | C::DropDb
            | C::Connect
            | C::Time
            | C::DelayedInsert
            | C::BinlogDump
            | C::TableDump
            | C::ConnectOut
            | C::RegisterReplica
            | C::Daemon
            | C::BinlogDumpGtid
            | C::Clone
            | C::SubscribeGroupReplicationStream => Self::Unsupported(code),
        })
    }

    /// What it is called.
    pub fn code(&self) -> CommandCode {
        match self {
            Self::Quit => CommandCode::Quit,
            Self::InitDb(_) => CommandCode::InitDb,
            Self::Query(_) => CommandCode::Query,
            Self::FieldList { .. } => CommandCode::FieldList,
            Self::Refresh(_) => CommandCode::Refresh,
            Self::Shutdown => CommandCode::Shutdown,
            Self::Statistics => CommandCode::Statistics,
            Self::ProcessInfo => CommandCode::ProcessInfo,
            Self::ProcessKill(_) => CommandCode::ProcessKill,
            Self::Debug => CommandCode::Debug,
            Self::Ping => CommandCode::Ping,
            Self::ChangeUser(_) => CommandCode::ChangeUser,
            Self::StmtPrepare(_) => CommandCode::StmtPrepare,
            Self::StmtExecute(_) => CommandCode::StmtExecute,
            Self::StmtSendLongData { .. } => CommandCode::StmtSendLongData,
            Self::StmtClose(_) => CommandCode::StmtClose,
            Self::StmtReset(_) => CommandCode::StmtReset,
            Self::StmtFetch { .. } => CommandCode::StmtFetch,
            Self::SetMultiStatements(_) => CommandCode::SetOption,
            Self::ResetConnection => CommandCode::ResetConnection,
            Self::Unsupported(code) => *code,
        }
    }

    /// Writes it as a packet of its own, number 0: a command begins a new exchange.
    #[inline]
    pub fn write(&self, writer: &mut PacketWriter, capabilities: Capabilities) {
        writer.set_sequence(0);
        writer.packet(|out| {
            out.push(self.code() as u8);
            match *self {
                Self::Query(Query { sql, attributes }) => {
                    attributes.put(out, capabilities);
                    out.extend_from_slice(sql);
                }
                Self::InitDb(bytes) | Self::StmtPrepare(bytes) => out.extend_from_slice(bytes),
                Self::FieldList { table, pattern } => {
                    out.put_nul_bytes(table);
                    out.extend_from_slice(pattern);
                }
                Self::Refresh(bits) => out.push(bits),
                Self::ProcessKill(number) | Self::StmtClose(number) | Self::StmtReset(number) => {
                    out.put_u32(number);
                }
                Self::ChangeUser(change) => change.put(out, capabilities),
                Self::StmtExecute(execute) => {
                    out.put_u32(execute.statement);
                    out.push(execute.cursor.bits());
                    out.put_u32(1);
                    out.extend_from_slice(execute.parameters.bytes());
                }
                Self::StmtSendLongData {
                    statement,
                    parameter,
                    bytes,
                } => {
                    out.put_u32(statement);
                    out.put_u16(parameter);
                    out.extend_from_slice(bytes);
                }
                Self::StmtFetch { statement, rows } => {
                    out.put_u32(statement);
                    out.put_u32(rows);
                }
                Self::SetMultiStatements(on) => out.put_u16(u16::from(!on)),
                Self::Quit
                | Self::Shutdown
                | Self::Statistics
                | Self::ProcessInfo
                | Self::Debug
                | Self::Ping
                | Self::ResetConnection
                | Self::Unsupported(_) => {}
            }
        });
    }
}
