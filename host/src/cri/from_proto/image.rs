//! ImageSpec and AuthConfig.

use cri_api::runtime::v1 as cri;

use super::{no_nul, required};
use crate::error::Error;
use crate::model::ids::ImageReference;
use crate::model::image::RegistryAuth;

/// The image a request names, and how the user wrote it.
pub(in crate::cri) fn image_reference(
    spec: Option<cri::ImageSpec>,
    field: &str,
) -> Result<(ImageReference, String), Error> {
    let cri::ImageSpec {
        image,
        annotations: _, // informational: nothing in CRI says what one of them asks for
        user_specified_image,
        runtime_handler: _, // one engine, one image store for all handlers
        image_ref: _,       // an answer's field
    } = required(spec, field)?;
    if image.is_empty() {
        return Err(Error::invalid(
            format!("{field}.image"),
            "must not be empty",
        ));
    }
    no_nul(&image, &format!("{field}.image"))?;
    let requested = if user_specified_image.is_empty() {
        image.clone()
    } else {
        user_specified_image
    };
    no_nul(&requested, &format!("{field}.user_specified_image"))?;
    Ok((ImageReference::new(image), requested))
}

/// Credentials; nothing given is none.
pub(in crate::cri) fn registry_auth(
    auth: Option<cri::AuthConfig>,
) -> Result<Option<RegistryAuth>, Error> {
    let Some(cri::AuthConfig {
        mut username,
        mut password,
        auth,
        server_address,
        identity_token,
        registry_token,
    }) = auth
    else {
        return Ok(None);
    };
    // As Docker's config file has it: base64 of user:password. Fields given by themselves win.
    if !auth.is_empty() && username.is_empty() && password.is_empty() {
        (username, password) = split_auth(&auth)?;
    }
    let auth = RegistryAuth {
        username,
        password,
        server_address,
        identity_token,
        registry_token,
    };
    Ok((auth != RegistryAuth::default()).then_some(auth))
}

fn split_auth(auth: &str) -> Result<(String, String), Error> {
    let wrong = || Error::invalid("auth.auth", "must be the base64 form of user:password");
    let bytes = base64(auth).ok_or_else(wrong)?;
    let text = String::from_utf8(bytes).map_err(|_| wrong())?;
    let (user, password) = text.split_once(':').ok_or_else(wrong)?;
    // Old config files pad with NUL.
    Ok((user.to_owned(), password.trim_end_matches('\0').to_owned()))
}

/// Decodes standard base64 with or without padding.
fn base64(text: &str) -> Option<Vec<u8>> {
    use base64::Engine as _;
    use base64::engine::DecodePaddingMode;
    use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
    const LENIENT: GeneralPurpose = GeneralPurpose::new(
        &base64::alphabet::STANDARD,
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
    );
    LENIENT.decode(text.trim()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_base64_form_is_read() {
        let auth = |text: &str| cri::AuthConfig {
            auth: text.to_owned(),
            ..cri::AuthConfig::default()
        };
        let read = registry_auth(Some(auth("dXNlcjpwOnc="))).unwrap().unwrap();
        assert_eq!(
            (read.username.as_str(), read.password.as_str()),
            ("user", "p:w")
        );
        assert!(
            registry_auth(Some(auth("%%%")))
                .unwrap_err()
                .to_string()
                .starts_with("auth.auth")
        );
        assert_eq!(
            registry_auth(Some(cri::AuthConfig::default())).unwrap(),
            None
        );
    }
}
