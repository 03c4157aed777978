fn main() {
    let port: u16 = std::env::args().nth(1).unwrap().parse().unwrap();
    let socket = std::env::args().nth(2).unwrap();
    let workers = std::env::args().nth(3).map_or(0, |w| w.parse().unwrap());
    let options = porpoise_server::ServerOptions {
        tcp: vec![([127, 0, 0, 1], port).into()],
        socket: Some(socket.into()),
        workers,
    };
    let server =
        porpoise_server::Server::start(porpoise_server::engine::Engine::stand_in(), &options)
            .unwrap();
    eprintln!("ready");
    server.wait();
    server.stop();
}
