//! The socket's lines, from both sides: what can be read says the same when it is written again.

use yard_client::{Reply, Request};

pub(super) fn run(input: &[u8]) {
    for line in input.split(|byte| *byte == b'\n') {
        if let Ok(request) = serde_json::from_slice::<Request>(line) {
            let again = serde_json::to_vec(&request).expect("a request");
            let read: Request = serde_json::from_slice(&again).expect("what is written can be read");
            assert_eq!(format!("{read:?}"), format!("{request:?}"));
        }
        if let Ok(reply) = serde_json::from_slice::<Reply>(line) {
            let again = reply.line().expect("a line").concat();
            assert_eq!(again.iter().position(|byte| *byte == b'\n'), Some(again.len() - 1), "one line");
            let read: Reply = serde_json::from_slice(&again).expect("what is written can be read");
            assert_eq!(format!("{read:?}"), format!("{reply:?}"));
        }
    }
}
