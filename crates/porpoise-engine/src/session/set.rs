//! SET.

use porpoise_sql::ast;
use porpoise_types::{DataType, Value};

use crate::error::{Error, Result};
use crate::session::Session;

impl Session {
    pub(super) fn set(
        &mut self,
        statement: &ast::Statement,
        sql: &[u8],
        types: &[DataType],
        parameters: &[Value],
    ) -> Result<()> {
        let _ = (statement, sql, types, parameters);
        Err(Error::not_supported_yet("SET"))
    }
}
