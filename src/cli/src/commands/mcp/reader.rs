//! Standard input that tells when it has ended. The SDK lets calls that are under way finish first; a call that waits for
//! mail would keep the server alive although its client is gone.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, ReadBuf};
use tokio::sync::watch;

/// A reader with somebody to tell.
pub(super) struct Reader<R> {
    inner: R,
    closed: watch::Sender<bool>,
}

impl<R> Reader<R> {
    pub(super) fn new(inner: R, closed: watch::Sender<bool>) -> Self {
        Self { inner, closed }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Reader<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = (buffer.filled().len(), buffer.remaining());
        let read = ready!(Pin::new(&mut self.inner).poll_read(context, buffer));
        let is_end = before.1 > 0 && buffer.filled().len() == before.0;
        if is_end || read.is_err() {
            self.closed.send_replace(true);
        }
        Poll::Ready(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncReadExt as _;

    #[test]
    fn the_end_is_told_and_nothing_before_it() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(async {
            let (closed, is_closed) = watch::channel(false);
            let mut reader = Reader::new(&b"ab"[..], closed);
            let mut two = [0; 2];
            reader.read_exact(&mut two).await.expect("two bytes");
            assert!(!*is_closed.borrow());
            assert_eq!(reader.read(&mut two).await.expect("the end"), 0);
            assert!(*is_closed.borrow());
        });
    }
}
