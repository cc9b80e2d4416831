//! Passwords that are not in the address, as every PostgreSQL client finds them: `PGPASSWORD`, else `PGPASSFILE` or
//! `~/.pgpass`, which only its owner may read.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use postgres::Config;
use postgres::config::Host;

/// The password for this server, if one is kept.
pub(super) fn kept_password(config: &Config) -> Option<String> {
    if let Some(password) = std::env::var("PGPASSWORD").ok().filter(|password| !password.is_empty()) {
        return Some(password);
    }
    let file = std::env::var_os("PGPASSFILE").map(PathBuf::from).or_else(|| {
        let home = std::env::var_os("HOME")?;
        Some(PathBuf::from(home).join(".pgpass"))
    })?;
    // The last six bits are what others may do with it.
    let is_private =
        fs::metadata(&file).is_ok_and(|it| it.is_file() && it.permissions().mode().trailing_zeros() >= 6);
    if !is_private {
        return None;
    }
    in_file(&fs::read_to_string(file).ok()?, config)
}

/// The first line that fits: `host:port:database:user:password`, where `*` fits everything.
fn in_file(text: &str, config: &Config) -> Option<String> {
    let host = match config.get_hosts().first()? {
        Host::Tcp(name) => name.clone(),
        Host::Unix(_) => "localhost".to_owned(),
    };
    let port = config.get_ports().first().copied().unwrap_or(5432).to_string();
    let wanted = [host.as_str(), &port, config.get_dbname()?, config.get_user()?];
    text.lines().filter(|line| !line.starts_with('#')).find_map(|line| {
        let fields = fields(line);
        let fits =
            fields.len() == 5 && fields.iter().zip(wanted).all(|(field, it)| field == "*" || field == it);
        fits.then(|| fields[4].clone())
    })
}

/// The fields of a line; a backslash takes the meaning of what follows it.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match letter {
            ':' if fields.len() < 5 => fields.push(String::new()),
            '\\' => fields.last_mut().into_iter().for_each(|field| field.extend(letters.next())),
            _ => fields.last_mut().into_iter().for_each(|field| field.push(letter)),
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn the_first_line_that_fits_has_the_password() {
        let config: Config = "postgres://ann@db:5433/yards".parse().unwrap();
        let text = "# mine\nother:5433:yards:ann:no\ndb:*:yards:ann:a\\:b\\\\c:d\n*:*:*:*:last\n";
        assert_eq!(in_file(text, &config).as_deref(), Some("a:b\\c:d"));
        let other: Config = "postgres://bob@db:5433/yards".parse().unwrap();
        assert_eq!(in_file(text, &other).as_deref(), Some("last"));
        assert_eq!(in_file("db:1:yards:bob:no\nshort:line\n", &other), None);
    }
}
