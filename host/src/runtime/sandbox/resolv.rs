//! The resolv.conf of a sandbox, from its DNS configuration. Pure; the front has validated the words.

use crate::model::sandbox::DnsConfig;

/// The file's content, in the order in which the kubelet gave it.
pub(super) fn resolv_conf(dns: &DnsConfig) -> String {
    let DnsConfig {
        servers,
        searches,
        options,
    } = dns;
    let mut text = String::new();
    if !searches.is_empty() {
        text.push_str(&format!("search {}\n", searches.join(" ")));
    }
    for server in servers {
        text.push_str(&format!("nameserver {server}\n"));
    }
    if !options.is_empty() {
        text.push_str(&format!("options {}\n", options.join(" ")));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_only_for_what_is_there() {
        let dns = DnsConfig {
            servers: vec!["10.0.0.1".into(), "fd00::1".into()],
            searches: vec!["a.local".into(), "local".into()],
            options: vec!["ndots:5".into()],
        };
        assert_eq!(
            resolv_conf(&dns),
            "search a.local local\nnameserver 10.0.0.1\nnameserver fd00::1\noptions ndots:5\n"
        );
        assert_eq!(resolv_conf(&DnsConfig::default()), "");
    }
}
