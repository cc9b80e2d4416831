//! The config file and what a person types for its keys: an edit that is taken leaves a file that can be read, and every
//! other setting as it was.

use yard_daemon::config::{KEYS, parse_settings, parse_size};
use yard_daemon::fuzzing::config_set;

pub(super) const WORDS: &[&str] = &[
    "[scheduler]\n",
    "max_polecats = 5\n",
    "scheduler.max_polecats = -1\n",
    "[rig.yard]\n",
    "wake = ['true']\n",
    "[account.a]\n",
    "cooldown = '5m'\n",
    "[http]\nlisten = '127.0.0.1:0'\n",
    "[cost]\ndaily = 5.5\n",
    "off",
    "none",
    "unlimited",
    "# note\n",
    "scheduler = { batch_size = 1 }\n",
    "[retry.crash]\nbackoff = ['1m']\n",
    "rig.a-b.formula",
    "account.x.max_polecats",
    "64MiB",
    "1.5GB",
    "2h",
    "http://x/",
    "{ \"tab-*\" = \"http://x\" }",
    "[\"sh\", \"-c\", \"x\"]",
];

pub(super) fn run(input: &[u8]) {
    let parts = super::texts(input);
    let part = |nth: usize| parts.get(nth).map_or("", String::as_str);
    let before = parse_settings(part(0));
    let _ = parse_size(part(2));
    let listed = KEYS[super::number(input) % KEYS.len()].key.replace("NAME", "yard");
    for key in [part(1), &listed] {
        let Some(edited) = config_set(part(0), key, part(2)) else { continue };
        let after = parse_settings(&edited);
        if before.is_ok() {
            after.unwrap_or_else(|error| panic!("{error} after {key} was set: {edited:?}"));
        }
        let again = config_set(&edited, key, part(2));
        assert_eq!(again.as_ref(), Some(&edited), "setting {key} twice changes more");
    }
}
