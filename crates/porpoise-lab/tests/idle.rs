//! Idle sessions of Porpoise and of MariaDB are found and ended.

use std::time::{Duration, Instant};

use porpoise_client::{Connection, Options, Transport};
use porpoise_e2e::server::{Product, Server};
use porpoise_lab::idle::{self, Ended};

fn connect(server: &Server) -> Connection {
    let account = match server.product {
        Product::Porpoise => "root:sesame",
        _ => "root",
    };
    let options: Options = format!(
        "mysql://{account}@localhost/?transport=unix&socket={}",
        server.socket.display()
    )
    .parse()
    .unwrap();
    Connection::connect(&options).unwrap()
}

fn idle_sessions_are_found_and_ended(product: Product) {
    let server = Server::start(product);
    let mut looks = connect(&server);
    let mut sleeps = connect(&server);
    let mut works = connect(&server);
    works.send_query("SELECT SLEEP(30)").unwrap();
    works.flush().unwrap();
    assert_eq!(
        idle::sessions(&mut looks, Duration::from_secs(600)).unwrap(),
        []
    );
    let second = Duration::from_secs(1);
    let deadline = Instant::now() + Duration::from_secs(20);
    let session = loop {
        assert!(Instant::now() < deadline);
        let found = idle::sessions(&mut looks, second).unwrap();
        if let Some(session) = found.iter().find(|one| one.id == u64::from(sleeps.id())) {
            let ids: Vec<u64> = found.iter().map(|one| one.id).collect();
            assert!(!ids.contains(&u64::from(works.id())) && !ids.contains(&u64::from(looks.id())));
            break session.clone();
        }
        std::thread::sleep(Duration::from_millis(100));
    };
    assert_eq!((&*session.user, &*session.schema), ("root", ""));
    // Its client comes back in time.
    sleeps.rows("SELECT 1").unwrap();
    let seen = idle::IdleSession {
        idle: second,
        ..session
    };
    assert_eq!(idle::end(&mut looks, &seen).unwrap(), Ended::NotIdle);
    sleeps.rows("SELECT 1").unwrap();
    std::thread::sleep(Duration::from_millis(2100));
    assert_eq!(idle::end(&mut looks, &seen).unwrap(), Ended::Now);
    assert!(sleeps.rows("SELECT 1").is_err());
    assert_eq!(idle::end(&mut looks, &seen).unwrap(), Ended::NotIdle);
    looks.run(format!("KILL {}", works.id())).unwrap();

    // Who may see the sessions of others, and who may not.
    assert!(idle::sees_all(&mut looks).unwrap());
    looks
        .run("CREATE USER 'o''x, PROCESS'@'localhost' IDENTIFIED BY 'pass'")
        .unwrap();
    let options = Options {
        transport: Transport::Unix,
        socket: Some(server.socket.clone()),
        user: "o'x, PROCESS".into(),
        password: "pass".into(),
        ..Options::default()
    };
    let sees = || idle::sees_all(&mut Connection::connect(&options).unwrap()).unwrap();
    assert!(!sees());
    looks
        .run("GRANT RELOAD, PROCESS ON *.* TO 'o''x, PROCESS'@'localhost'")
        .unwrap();
    assert!(sees());
}

#[test]
fn of_porpoise() {
    idle_sessions_are_found_and_ended(Product::Porpoise);
}

#[test]
fn of_mariadb() {
    idle_sessions_are_found_and_ended(Product::MariaDb);
}
