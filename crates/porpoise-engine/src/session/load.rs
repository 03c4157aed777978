//! LOAD DATA: where the bytes come from. What becomes of them is [`porpoise_executor::load`]'s business.
//!
//! A file of the server is read if `secure_file_priv` allows it: NULL, the default, allows none, a folder those
//! in it. With LOCAL the client has the file, and sends it if `local_infile` is on and the client agrees.

use std::path::{Path, PathBuf};

use porpoise_core::error::{Error, Result};
use porpoise_core::privilege::Privilege;
use porpoise_core::reply::Reply;
use porpoise_planner as planner;
use porpoise_session::check;
use porpoise_session::session_state::Source;
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
                    .set_user_variable(&name, Value::text(""), DataType::varchar(0));
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
        let path = self.readable_path(&load.path)?;
        let file = std::fs::File::open(&path).map_err(|error| unreadable(&path, &error))?;
        Ok(Box::new(file))
    }

    /// A file of the server that the session may read.
    fn readable_path(&self, path: &[u8]) -> Result<PathBuf> {
        if !check::has_global(&self.state, Privilege::File) {
            return Err(Error::access_denied(
                &self.state.user,
                &self.state.host,
                "YES",
            ));
        }
        let refused = || Error::read_only_option("--secure-file-priv");
        let variables = &self.shared.variables;
        let Value::Text(folder) = variables.get("secure_file_priv") else {
            return Err(refused());
        };
        let path = PathBuf::from(String::from_utf8_lossy(path).into_owned());
        let path = match path.is_absolute() {
            true => path,
            false => Path::new(variables.get_text("datadir").as_str()).join(path),
        };
        // Links are followed first, so that none leads out of the folder.
        let real = std::fs::canonicalize(&path).map_err(|error| unreadable(&path, &error))?;
        if folder.is_empty() {
            return Ok(real);
        }
        let allowed = std::fs::canonicalize(folder.as_str()).map_err(|_| refused())?;
        if real.starts_with(allowed) {
            Ok(real)
        } else {
            Err(refused())
        }
    }
}

fn unreadable(path: &Path, error: &std::io::Error) -> Error {
    Error::cannot_stat(
        path.display(),
        error.raw_os_error().unwrap_or_default(),
        match error.kind() {
            std::io::ErrorKind::NotFound => "No such file or directory".to_string(),
            std::io::ErrorKind::PermissionDenied => "Permission denied".to_string(),
            _ => error.to_string(),
        },
    )
}
