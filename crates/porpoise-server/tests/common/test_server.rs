//! A server in this process, in a folder of its own.

use std::path::PathBuf;

use porpoise_engine::{Engine, EngineOptions};
use porpoise_server::{Server, ServerOptions};
use porpoise_storage::Location;
use porpoise_transport::shared_memory::{BASE_NAME, path_of};

use super::RawClient;

pub struct TestServer {
    pub server: Server,
    folder: tempfile::TempDir,
}

/// A number and a message.
pub type RefusedLogin = (u16, String);

/// Nothing that lasts, and these variables.
pub fn in_memory(variables: &[(&str, &str)]) -> EngineOptions {
    let owned = |&(name, value): &(&str, &str)| (name.to_string(), value.to_string());
    EngineOptions {
        location: Location::Memory,
        variables: variables.iter().map(owned).collect(),
    }
}

impl TestServer {
    /// With a Unix socket and shared memory beside the listeners of `options`, after root has run all
    /// of `setup`.
    pub fn start(engine: EngineOptions, options: ServerOptions, setup: &[&str]) -> TestServer {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("s.sock");
        let options = ServerOptions {
            shared_memory: Some(path_of(&socket, BASE_NAME)),
            socket: Some(socket),
            ..options
        };
        let server = Server::start(Engine::open(engine).unwrap(), &options).unwrap();
        let server = TestServer { server, folder };
        let mut root = server.root();
        for sql in setup {
            let answer = root.query(sql);
            assert!(answer.is_ok(), "{sql}: {answer:?}");
        }
        server
    }

    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("s.sock")
    }

    /// Over the Unix socket, or shared memory in its place.
    pub fn local(&self, user: &str, password: &str) -> Result<RawClient, RefusedLogin> {
        RawClient::local(&self.socket())
            .unwrap()
            .login(user, password)
    }

    pub fn root(&self) -> RawClient {
        self.local("root", "").unwrap()
    }

    pub fn status(&self, name: &str) -> String {
        let answer = self
            .root()
            .query(&format!("SHOW GLOBAL STATUS LIKE '{name}'"));
        answer.rows()[0][1].clone().unwrap()
    }

    pub fn count(&self, name: &str) -> u64 {
        self.status(name).parse().unwrap()
    }
}
