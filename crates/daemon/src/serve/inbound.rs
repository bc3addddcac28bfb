//! The one way in. A request of any era, to one server or to the hub, goes through here on its way to a link:
//!
//! ```text
//!  message ── whose it is, under which id ── check ──┬─ passes ────────────────────────────► deliver ── answer
//!                                                    └─ is held ── hold, until it is known ──► deliver, or why not
//! ```
//! `post`, `modern`, `hub` and `plain` say how a request is read, how it is delivered and how it is answered, and nothing of
//! what lies between: whoever adds a way in cannot leave the check out, or put it in another place.

use std::sync::Arc;

use hyper::Response;
use prism_bridge::{
    access::TrackedRequest,
    admission::{AdmissionCheck, PendingCall},
    admitted::Admitted,
    drive::{Destination, sessions::BusyGuard},
};
use prism_core::{mcp::AcceptedFormats, wire::Message};

use super::{
    DaemonSnapshot,
    body::ResponseBody,
    correlation::{CallOrigin, correlated},
    fault::RequestDenial,
    hold::{AnswerFormat, Answering, HoldOutcome, hold},
};

/// A request on its way in: for which server, from whom, and where it is recorded.
pub(super) struct Inbound<'a> {
    pub(super) server: &'a Arc<DaemonSnapshot>,
    /// The server that it is for.
    pub(super) destination: &'a Arc<Destination>,
    pub(super) from: CallOrigin<'a>,
    pub(super) record: &'a mut TrackedRequest,
}

/// How a request that was let pass gets to a link, and what its client gets for it. It owns what it needs: one that waits for
/// a person outlives its request.
pub(super) trait Delivery: Clone + Send + 'static {
    fn manner(&self) -> AnswerFormat;

    /// Keeps the session from ending meanwhile, if there is one.
    fn occupy(&self, server: &DaemonSnapshot) -> Option<BusyGuard>;

    /// Whether it goes on with a call that its client was asked about before.
    fn is_resumed(&self) -> bool {
        false
    }

    fn deliver(
        self,
        server: &Arc<DaemonSnapshot>,
        message: Admitted,
        record: &mut TrackedRequest,
    ) -> impl Future<Output = Result<Response<ResponseBody>, RequestDenial>> + Send;
}

impl Inbound<'_> {
    /// Notes whose request it is, and checks it. Whatever is to be sent comes from here.
    pub(super) fn check(&mut self, message: Message) -> AdmissionCheck {
        let message = correlated(self.destination, self.from, message, self.record);
        self.server.calls.check(self.destination, message)
    }

    /// Takes a request all the way to its answer.
    pub(super) async fn pass(
        mut self,
        message: Message,
        delivery: impl Delivery,
    ) -> Result<Response<ResponseBody>, RequestDenial> {
        match self.check(message) {
            AdmissionCheck::Through(message) => delivery.deliver(self.server, message, self.record).await,
            AdmissionCheck::Held(held) => Box::pin(self.wait(held, delivery)).await,
        }
    }

    async fn wait(
        self,
        mut held: Box<PendingCall>,
        delivery: impl Delivery,
    ) -> Result<Response<ResponseBody>, RequestDenial> {
        if delivery.is_resumed() {
            held.resumes();
        }
        let (busy, manner, later) = (delivery.occupy(self.server), delivery.manner(), delivery.clone());
        let (server, destination, carried) = (self.server.clone(), self.destination.clone(), self.record.carried());
        let resume = move |message| -> Answering {
            Box::pin(async move {
                let _busy = busy;
                // The request's own record has ended with the stream that it waits on.
                let mut record = TrackedRequest::start(&server.access, "POST");
                record.destination(destination.metrics());
                record.carries(carried);
                later.deliver(&server, message, &mut record).await
            })
        };
        match hold(self.server, held, self.from.who(), manner, resume).await {
            HoldOutcome::Go(message) => delivery.deliver(self.server, message, self.record).await,
            HoldOutcome::Done(response) => Ok(response),
        }
    }
}

impl AnswerFormat {
    /// How requests of the legacy era are answered.
    pub(super) fn legacy(accepts: AcceptedFormats) -> Self {
        Self { accepts, modern: false }
    }
}
