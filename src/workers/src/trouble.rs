//! Whose fault it is that something could not be started: a machine that is short of descriptors, processes, memory or
//! space says nothing about the work, which simply waits.

use std::io;

use nix::errno::Errno;

/// Whether such a failure is the machine's and not the order's.
pub(crate) fn is_shortage(errno: Errno) -> bool {
    matches!(
        errno,
        Errno::EAGAIN
            | Errno::ENOMEM
            | Errno::EMFILE
            | Errno::ENFILE
            | Errno::ENOBUFS
            | Errno::ENOSPC
            | Errno::EDQUOT
            | Errno::EROFS
            | Errno::EIO
    )
}

/// Whether an order was refused because the machine is short of something, or because whoever was to take it has died: it
/// may be tried again, and counts for nothing.
pub fn is_machines_fault(error: &io::Error) -> bool {
    let number = error.raw_os_error().or_else(|| {
        let explained = error.get_ref()?.downcast_ref::<Explained>()?;
        explained.source.raw_os_error()
    });
    let errno = number.map(Errno::from_raw);
    errno.is_some_and(|errno| is_shortage(errno) || matches!(errno, Errno::EPIPE | Errno::ECONNRESET))
}

/// An error in other words, which still knows what the system said.
pub(crate) fn explain(what: &str, source: io::Error) -> io::Error {
    io::Error::new(source.kind(), Explained { what: what.to_owned(), source })
}

#[derive(Debug, thiserror::Error)]
#[error("{what}: {source}")]
struct Explained {
    what: String,
    source: io::Error,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shortage_is_known_in_other_words_too() {
        let short = || io::Error::from_raw_os_error(Errno::EMFILE as i32);
        assert!(is_machines_fault(&short()));
        let told = explain("the claim of gt-a@1 cannot be made", short());
        assert!(is_machines_fault(&told));
        assert!(
            told.to_string().starts_with("the claim of gt-a@1 cannot be made: Too many open files"),
            "{told}"
        );
        assert!(is_machines_fault(&io::Error::from_raw_os_error(Errno::EPIPE as i32)), "its shim is gone");
        assert!(!is_machines_fault(&io::Error::from(io::ErrorKind::NotFound)));
        assert!(!is_machines_fault(&io::Error::from_raw_os_error(Errno::ENOENT as i32)));
    }
}
