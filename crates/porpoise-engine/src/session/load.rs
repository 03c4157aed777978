//! LOAD DATA: where the bytes come from. What becomes of them is [`porpoise_executor::load`]'s
//! business.
//!
//! A file of the server is read if [`server_files`] allows it. With LOCAL the client has the file,
//! and sends it if `local_infile` is on and the client agrees.

use porpoise_core::error::{Error, Result};
use porpoise_core::reply::Reply;
use porpoise_planner as planner;
use porpoise_session::session_state::Source;
use porpoise_session::{check, server_files};
use porpoise_sql::ast;
use porpoise_storage::Commit;
use porpoise_types::{DataType, Value};

use crate::session::Session;

impl Session {
    pub(super) fn load_data(
        &mut self,
        statement: &ast::Statement,
        load: &ast::LoadData,
        sql: &[u8],
        types: &[DataType],
        parameters: &[Value],
        reply: &mut dyn Reply,
    ) -> Result<Option<Commit>> {
        // SET is typed before the first line is read: variables are texts.
        for target in &load.columns {
            if let ast::LoadTarget::Variable(name) = target {
                let name = name.to_lowercase();
                self.state
                    .set_user_variable(&name, Value::text(""), DataType::varchar(0))?;
            }
        }
        let catalog = self.shared.catalog.load_full();
        let context = self.context(&catalog, sql, types);
        let plan = planner::plan(statement, &context).map_err(|failed| self.refuse(failed))?;
        // Before the client is asked for its file.
        check::plan(&self.state, &self.shared.accounts, &plan)?;
        // Planned again, the statement goes on with the lines it has: none of them has been read.
        if self.state.load_source.is_none() {
            self.state.load_source = Some(self.load_source(load, reply)?);
        }
        self.execute_plan(&plan, &catalog, parameters, None, reply)
    }

    fn load_source(&self, load: &ast::LoadData, reply: &mut dyn Reply) -> Result<Source> {
        if load.local {
            if self.shared.variables.get_u64("local_infile") == 0 {
                return Err(Error::local_data_disabled());
            }
            return Ok(Box::new(std::io::Cursor::new(
                reply.local_file(&load.path)?,
            )));
        }
        let file = server_files::open(&self.state, &self.shared, &load.path)?;
        Ok(Box::new(file))
    }
}
