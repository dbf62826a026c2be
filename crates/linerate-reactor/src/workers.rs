//! The threads of a server or a connector, and the routes that all of them share.

use std::{collections::HashMap, io, sync::Arc, thread};

use linerate_proto::handshake::{BuildError, HttpResponse, Request};

use crate::{
    handler::Handler,
    platform::Socket,
    reactor::Reactor,
    remote::Remote,
    route::{
        AnyRoute, Route,
        pages::{AnswerPage, Pages},
        routes::Routes,
    },
    worker::Worker,
};

/// Maximum number of worker threads.
const WORKERS_MAX: usize = 1_024;

/// Makes a route on the thread of its worker, because the data of its connections need not be
/// `Send`.
type MakeRoute = Box<dyn FnOnce() -> Box<dyn AnyRoute> + Send>;

/// Makes a [`MakeRoute`] for another worker.
type CloneRoute = Box<dyn Fn() -> MakeRoute + Send>;

/// Clones a function that answers plain HTTP requests, for another worker.
type ClonePage = Box<dyn Fn() -> Box<AnswerPage> + Send>;

/// The handlers and what each is used for.
#[derive(Default)]
pub(crate) struct Routing {
    pub(crate) by_path: HashMap<String, u16>,
    pub(crate) fallback: Option<u16>,
    /// The handler of connections that other threads open.
    pub(crate) outbound: Option<u16>,
    routes: Vec<CloneRoute>,
    pages: HashMap<String, ClonePage>,
}

impl Routing {
    /// Adds a handler; returns its route.
    ///
    /// # Panics
    /// If there are more than 65,535 routes.
    pub(crate) fn add<H: Handler>(&mut self, handler: H) -> u16 {
        let index = u16::try_from(self.routes.len()).expect("at most 65,535 routes");
        self.routes.push(Box::new(move || {
            let handler = handler.clone();
            Box::new(move || Box::new(Route::new(handler)))
        }));
        index
    }

    /// Sets the function that answers plain HTTP requests for `path`.
    pub(crate) fn set_page<F>(&mut self, path: &str, answer: F)
    where
        F: FnMut(&Request) -> Result<HttpResponse, BuildError> + Clone + Send + 'static,
    {
        let clone = Box::new(move || Box::new(answer.clone()) as Box<AnswerPage>);
        self.pages.insert(path.to_owned(), clone);
    }

    /// Returns a function that makes the routes of another worker, to be called on its thread.
    fn for_worker(&self) -> impl FnOnce() -> Routes + Send + use<> {
        let (by_path, fallback) = (self.by_path.clone(), self.fallback);
        let make: Vec<_> = self.routes.iter().map(|route| route()).collect();
        let pages = self.pages.iter();
        let pages = pages.map(|(path, clone)| (path.clone(), clone()));
        let pages = Pages(pages.collect());
        move || Routes {
            by_path,
            fallback,
            pages,
            handlers: make.into_iter().map(|make| make()).collect(),
        }
    }
}

/// Returns the default number of workers: one for each core.
pub(crate) fn workers_default() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// Returns the nearest valid number of workers.
pub(crate) fn clamp_workers(workers: usize) -> usize {
    workers.clamp(1, WORKERS_MAX)
}

/// Runs one worker for each element of `listeners` until the end: one worker on this thread, the
/// others on threads of their own.
pub(crate) fn run(
    reactor: &Arc<Reactor>,
    routing: &Routing,
    listeners: Vec<Option<Socket>>,
) -> io::Result<()> {
    let mut workers = listeners.into_iter().enumerate().map(|(number, listener)| {
        let (reactor, make_routes) = (reactor.clone(), routing.for_worker());
        let stop = StopOnDrop(Remote(reactor.clone()));
        move || {
            let _stop = stop;
            Worker::new(number as u16, listener, reactor, make_routes())?.run()
        }
    });
    let here = workers.next();
    let mut threads = Vec::new();
    for (number, worker) in workers.enumerate() {
        let thread = thread::Builder::new().name(format!("reactor-{}", number + 1));
        threads.push(thread.spawn(worker)?);
    }
    let mut outcome = here.map_or(Ok(()), |here| here());
    for thread in threads {
        let ended = thread.join();
        let ended = ended.unwrap_or_else(|_| Err(io::Error::other("a worker panicked")));
        outcome = outcome.and(ended);
    }
    outcome
}

/// Shuts the other workers down when a worker ends for any reason.
struct StopOnDrop(Remote);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.shut_down();
    }
}
