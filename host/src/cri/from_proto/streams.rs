//! What Exec, Attach and PortForward ask for.

use cri_api::runtime::v1 as cri;

use super::no_nul;
use crate::error::Error;
use crate::runtime::ports::{ExecSpec, StreamSpec};

/// The container and the command.
pub(in crate::cri) fn exec(request: cri::ExecRequest) -> Result<(String, ExecSpec), Error> {
    let cri::ExecRequest {
        container_id,
        cmd,
        tty,
        stdin,
        stdout,
        stderr,
    } = request;
    command(&cmd)?;
    let streams = StreamSpec {
        stdin,
        stdout,
        stderr,
        tty,
    };
    Ok((container_id, ExecSpec { cmd, streams }))
}

/// A command that some program can be given.
pub(in crate::cri) fn command(cmd: &[String]) -> Result<(), Error> {
    if cmd.is_empty() {
        return Err(Error::invalid("cmd", "must not be empty"));
    }
    for (index, word) in cmd.iter().enumerate() {
        no_nul(word, &format!("cmd[{index}]"))?;
    }
    Ok(())
}

/// The container and the streams.
pub(in crate::cri) fn attach(request: cri::AttachRequest) -> (String, StreamSpec) {
    let cri::AttachRequest {
        container_id,
        stdin,
        tty,
        stdout,
        stderr,
    } = request;
    let streams = StreamSpec {
        stdin,
        stdout,
        stderr,
        tty,
    };
    (container_id, streams)
}

/// The sandbox and the ports, of which there may be none.
pub(in crate::cri) fn port_forward(
    request: cri::PortForwardRequest,
) -> Result<(String, Vec<u16>), Error> {
    let cri::PortForwardRequest {
        pod_sandbox_id,
        port,
    } = request;
    let ports = port
        .iter()
        .enumerate()
        .map(|(index, port)| {
            u16::try_from(*port)
                .ok()
                .filter(|port| *port > 0)
                .ok_or_else(|| {
                    let reason = format!("{port} is no port; those are from 1 to 65535");
                    Error::invalid(format!("port[{index}]"), reason)
                })
        })
        .collect::<Result<_, _>>()?;
    Ok((pod_sandbox_id, ports))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_in_range() {
        for (name, port, want) in [
            ("none", vec![], Ok(vec![])),
            ("the ends", vec![1, 65535], Ok(vec![1, 65535])),
            ("zero", vec![80, 0], Err("port[1]")),
            ("too large", vec![65536], Err("port[0]")),
            ("negative", vec![-1], Err("port[0]")),
        ] {
            let request = cri::PortForwardRequest {
                pod_sandbox_id: "a".into(),
                port,
            };
            match (port_forward(request), want) {
                (Ok((_, ports)), Ok(want)) => assert_eq!(ports, want, "{name}"),
                (Err(error), Err(field)) => {
                    assert!(error.to_string().starts_with(field), "{name}: {error}");
                }
                (got, want) => panic!("{name}: {got:?}, not {want:?}"),
            }
        }
    }
}
