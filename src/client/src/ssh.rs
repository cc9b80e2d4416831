//! A town on another host, reached by the user's own ssh. What comes from an address or a command line reaches the shell
//! there only quoted, and an address can never become an option of ssh.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use crate::place::BadPlace;

/// How such addresses begin.
const SCHEME: &str = "ssh://";
/// What ssh itself exits with when it gets nowhere.
const SSH_FAILED: i32 = 255;
/// What a shell exits with that finds no such program, or none it may run.
const NOT_FOUND: i32 = 127;
const NOT_ALLOWED: i32 = 126;

/// The address of a town: `ssh://[user@]host[:port]/path`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SshTown {
    address: String,
    host: String,
    port: Option<u16>,
    path: String,
    unattended: bool,
}

/// Why ssh brought nothing back, by its exit code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SshFailure {
    /// A stable word for scripts.
    pub code: &'static str,
    /// What happened.
    pub message: String,
    /// What to do about it.
    pub hint: String,
}

impl SshTown {
    /// Whether a text is meant to be such an address.
    pub fn is_meant(text: &str) -> bool {
        text.starts_with(SCHEME)
    }

    /// Reads an address.
    pub fn parse(address: &str) -> Result<Self, BadPlace> {
        let bad = |why: &str| BadPlace::new(address, why);
        let rest = address.strip_prefix(SCHEME).ok_or_else(|| bad("an address begins with ssh://"))?;
        let (authority, path) = rest
            .split_once('/')
            .ok_or_else(|| bad("it names no directory: write ssh://host/path/of/the/town"))?;
        let (user, host) = match authority.rsplit_once('@') {
            Some((user, host)) => (Some(user), host),
            None => (None, authority),
        };
        let (host, port) = host_and_port(host).map_err(|why| bad(&why))?;
        if !is_name(&host, ".-_:") {
            return Err(bad(
                "that is no name of a host: letters, digits, '.', '-' and '_', not beginning with '-'",
            ));
        }
        if user.is_some_and(|user| !is_name(user, ".-_+")) {
            return Err(bad("that is no name of a user: letters, digits, '.', '-', '_' and '+'"));
        }
        let path = path_there(path).map_err(|why| bad(&why))?;
        let host = user.map_or_else(|| host.clone(), |user| format!("{user}@{host}"));
        Ok(Self { address: address.to_owned(), host, port, path, unattended: false })
    }

    /// A directory on a host, as somebody who is there names both.
    pub fn on(host: &str, dir: &str) -> Result<Self, BadPlace> {
        Self::parse(&format!("{SCHEME}{host}{}", dir.replace('%', "%25")))
    }

    /// The address as it was given.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The host, with the user if one is named.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The town's directory there.
    pub fn path(&self) -> &str {
        &self.path
    }

    pub(crate) fn unattended(self) -> Self {
        Self { unattended: true, ..self }
    }

    /// `ssh` that runs `ym` there with these words, on a terminal of its own if wanted.
    pub fn ym<W: AsRef<OsStr>>(
        &self,
        env: &[(&str, OsString)],
        words: impl IntoIterator<Item = W>,
        terminal: bool,
    ) -> Result<Command, BadPlace> {
        let mut line: Vec<OsString> = Vec::new();
        if !env.is_empty() {
            line.push("env".into());
            line.extend(env.iter().map(|(name, value)| {
                let mut word = OsString::from(format!("{name}="));
                word.push(value);
                word
            }));
        }
        line.push(set_variable("YM_REMOTE_BIN").unwrap_or_else(|| "ym".into()));
        line.extend(words.into_iter().map(|word| word.as_ref().to_owned()));
        let quoted: Vec<Vec<u8>> = line.iter().map(|word| quoted(word.as_bytes())).collect();
        self.shell(OsString::from_vec(quoted.join(&b' ')), terminal)
    }

    /// `ssh` that connects its standard input and output to the town's socket.
    pub(crate) fn relay(&self) -> Result<Command, BadPlace> {
        self.ym(&[], ["__relay", &self.path], false)
    }

    /// `ssh -t` with a shell in a directory, which counts from the town's.
    pub fn shell_in(&self, dir: &Path) -> Result<Command, BadPlace> {
        let mut line = b"cd ".to_vec();
        line.extend(quoted(self.path.as_bytes()));
        line.extend(b" && cd ");
        line.extend(quoted(dir.as_os_str().as_bytes()));
        line.extend(b" && exec \"$SHELL\" -l");
        self.shell(OsString::from_vec(line), true)
    }

    fn shell(&self, line: OsString, terminal: bool) -> Result<Command, BadPlace> {
        let bad = |why: String| BadPlace::new(&self.address, why);
        let wished = set_variable("YM_SSH").unwrap_or_else(|| "ssh".into());
        let words = wished.to_str().and_then(shlex::split).filter(|words| !words.is_empty());
        let words = words.ok_or_else(|| bad(format!("YM_SSH is no command line: {}", wished.display())))?;
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]);
        // Other programs than OpenSSH's have other options.
        if Path::new(&words[0]).file_name() == Some(OsStr::new("ssh")) {
            if self.unattended {
                command.args(["-o", "BatchMode=yes", "-o", "ConnectTimeout=10"]);
                command.args(["-o", "ServerAliveInterval=15"]);
            }
            command.arg(if terminal { "-t" } else { "-T" });
        }
        if let Some(port) = self.port {
            command.arg("-p").arg(port.to_string());
        }
        if self.unattended && !terminal {
            command.process_group(0);
        }
        command.arg(&self.host).arg(line);
        Ok(command)
    }

    /// What an exit code of ssh says about the way there; nothing if it is that of the program there.
    pub fn failure(&self, code: Option<i32>) -> Option<SshFailure> {
        let host = &self.host;
        match code {
            Some(SSH_FAILED) => Some(SshFailure {
                code: "unreachable",
                message: format!("ssh did not get through to {host}"),
                hint: format!("try ssh {host} true; YM_SSH is the command line of ssh"),
            }),
            Some(NOT_FOUND) => Some(SshFailure {
                code: "no-ym-there",
                message: format!("there is no ym on {host}"),
                hint: "install it there, or name it: YM_REMOTE_BIN=/path/to/ym".to_owned(),
            }),
            Some(NOT_ALLOWED) => Some(SshFailure {
                code: "no-ym-there",
                message: format!("ym cannot be run on {host}"),
                hint: "is it made for that machine, and executable? YM_REMOTE_BIN names another".to_owned(),
            }),
            Some(_) | None => None,
        }
    }
}

fn set_variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// A host, in brackets if it is an IPv6 address, and its port.
pub(crate) fn host_and_port(text: &str) -> Result<(String, Option<u16>), String> {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, rest) = rest.split_once(']').ok_or("a ']' is missing")?;
            if host.parse::<std::net::Ipv6Addr>().is_err() {
                return Err(format!("[{host}] is no IPv6 address"));
            }
            (host, rest.strip_prefix(':').or(if rest.is_empty() { None } else { Some(rest) }))
        }
        None => match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    let port = match port {
        None => None,
        Some(port) => match port.parse::<u16>() {
            Ok(number) if number > 0 && port.bytes().all(|byte| byte.is_ascii_digit()) => Some(number),
            _ => return Err(format!("{port:?} is no port: 1 to 65535")),
        },
    };
    Ok((host.to_owned(), port))
}

fn is_name(text: &str, others: &str) -> bool {
    !text.is_empty()
        && !text.starts_with('-')
        && text.chars().all(|letter| letter.is_ascii_alphanumeric() || others.contains(letter))
}

/// The path of an address: absolute, or from the user's home if it begins with `~/`.
fn path_there(text: &str) -> Result<String, String> {
    let text = percent_decoded(text).ok_or("its path is not written as addresses are: % is %25")?;
    if text.chars().any(char::is_control) {
        return Err("its path has control characters".to_owned());
    }
    match text.strip_prefix('~') {
        // Where nothing else is said a command begins in the user's home.
        Some("" | "/") => Ok(".".to_owned()),
        Some(rest) => match rest.strip_prefix('/') {
            Some(rest) => Ok(format!("./{}", rest.trim_start_matches('/'))),
            None => Err("only ~/ is known there, the home of the user who logs in".to_owned()),
        },
        None if text.is_empty() => Err("it names no directory: write ssh://host/path/of/the/town".to_owned()),
        None => Ok(format!("/{text}")),
    }
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let (digits, after) = rest.split_at_checked(2)?;
        if !digits.iter().all(u8::is_ascii_hexdigit) {
            return None;
        }
        bytes.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
        rest = after;
    }
    String::from_utf8(bytes).ok()
}

/// A word as the shells of this world read it: sh and its kin, csh and fish. In quotes of the one kind all of them have,
/// except for what fish would read differently there.
fn quoted(word: &[u8]) -> Vec<u8> {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-./:@,+".contains(byte);
    if !word.is_empty() && word.iter().all(plain) {
        return word.to_vec();
    }
    let mut quoted = vec![b'\''];
    for byte in word {
        match byte {
            b'\'' | b'\\' => quoted.extend([b'\'', b'\\', *byte, b'\'']),
            other => quoted.push(*other),
        }
    }
    quoted.push(b'\'');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_name_a_host_and_a_directory() {
        let town = SshTown::parse("ssh://ann@yard.example:2222/srv/my%20town").expect("an address");
        assert_eq!((town.host(), town.port, town.path()), ("ann@yard.example", Some(2222), "/srv/my town"));
        let town = SshTown::parse("ssh://[::1]/t").expect("an address");
        assert_eq!((town.host(), town.port), ("::1", None));
        let path = |text: &str| SshTown::parse(text).expect("an address").path().to_owned();
        assert_eq!((path("ssh://h/~/x").as_str(), path("ssh://h/~").as_str()), ("./x", "."));
    }

    #[test]
    fn a_directory_is_named_as_it_is_called_there() {
        let town = SshTown::on("yard-2", "/srv/100% my town").expect("a town");
        assert_eq!((town.host(), town.path()), ("yard-2", "/srv/100% my town"));
        for (host, dir) in [("-oProxyCommand=x", "/t"), ("", "/t"), ("h", "t"), ("h;id", "/t")] {
            assert!(SshTown::on(host, dir).is_err(), "{host} {dir}");
        }
    }

    #[test]
    fn what_could_be_taken_for_something_else_is_no_address() {
        let hostile = [
            "ssh://-oProxyCommand=touch/x",
            "ssh://a@-h/x",
            "ssh://-a@h/x",
            "ssh://a;b/x",
            "ssh://a b/x",
            "ssh://$(id)/x",
            "ssh:///x",
            "ssh://h",
            "ssh://h/",
            "ssh://h:0/x",
            "ssh://h:99999/x",
            "ssh://h:+1/x",
            "ssh://[h]/x",
            "ssh://[::1/x",
            "ssh://h/~bob/x",
            "ssh://h/a%zz",
            "ssh://h/a%0ab",
            "ssh://h/a%",
            "ssh://@h/x",
        ];
        for address in hostile {
            assert!(SshTown::parse(address).is_err(), "{address}");
        }
    }

    #[test]
    fn a_shell_there_begins_where_the_rig_is() {
        let town = SshTown::parse("ssh://ann@h:2/srv/a%20b").expect("an address");
        let command = town.shell_in(Path::new("it's")).expect("a command");
        let args: Vec<_> = command.get_args().map(|arg| arg.to_string_lossy().into_owned()).collect();
        let line = "cd '/srv/a b' && cd 'it'\\''s' && exec \"$SHELL\" -l";
        assert_eq!(args, ["-t", "-p", "2", "ann@h", line]);
    }

    #[test]
    fn a_shell_reads_every_word_as_it_was() {
        let words =
            ["", "plain-1.2/x", "two words", "it's", "\\", "$HOME `id` \"x\"", "a\nb", "=x", "~", "*", "ü"];
        let line = words.map(|word| String::from_utf8(quoted(word.as_bytes())).expect("text")).join(" ");
        let output = Command::new("sh").args(["-c", &format!("printf '%s\\0' {line}")]).output().expect("sh");
        let read = String::from_utf8(output.stdout).expect("text");
        assert_eq!(read.split_terminator('\0').collect::<Vec<_>>(), words);
    }
}
