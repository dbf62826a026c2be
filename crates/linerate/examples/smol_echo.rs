//! A server and a client on smol, without tokio's runtime: `cargo run -p linerate --example
//! smol_echo --features futures-io`.

use linerate::runtime::{FuturesIo, Runtime, Sleep, Task};
use linerate::{Client, Listener, Request, Result, Server, WebSocket};
use smol::net::{TcpListener, TcpStream};
use std::{io, time::Instant};

struct Smol;

impl Runtime for Smol {
    fn spawn(&self, task: Task) {
        smol::spawn(task).detach();
    }
    fn sleep_until(&self, deadline: Instant) -> Sleep {
        Box::pin(async move { _ = smol::Timer::at(deadline).await })
    }
}

struct Tcp(TcpListener);

impl Listener for Tcp {
    type Stream = FuturesIo<TcpStream>;

    async fn accept(&mut self) -> io::Result<Self::Stream> {
        let (stream, _peer) = self.0.accept().await?;
        stream.set_nodelay(true)?;
        Ok(FuturesIo::new(stream))
    }
}

async fn echo(mut ws: WebSocket, _request: Request) -> Result<()> {
    while let Some(message) = ws.recv().await? {
        ws.send(message).await?;
    }
    Ok(())
}

fn main() -> Result<()> {
    smol::block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let stream = FuturesIo::new(TcpStream::connect(listener.local_addr()?).await?);
        let server = Server::new().with_runtime(Smol);
        let _serving = smol::spawn(server.serve(Tcp(listener), echo, smol::future::pending()));

        let client = Client::new().with_runtime(Smol);
        let mut ws = client.connect_over(stream, "ws://localhost/").await?;
        ws.send("Spam").await?;
        println!("{:?}", ws.recv().await?);
        Ok(())
    })
}
