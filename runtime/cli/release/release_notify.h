// release_notify.h: tells other systems how a release has ended.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/cli/release/mail_sender.h"
#include "runtime/cli/release/records.h"

namespace serin::cli {

/// An entry of `notify`: one of both.
struct Receiver {
  std::string url;  ///< or the path of a file with one (notify_url())
  std::optional<MailReceiver> mail;
};

/// The URL that an entry of `notify` means: itself, or the first line of the file that it names. The error says what is wrong, and has no URL.
Result<std::string> notify_url(const std::string& entry);

/// Posts {"text", "release"} to each URL, and mails both. A refused message is sent again twice. Returns a sentence for each receiver
/// that did not take it, without the path of its URL, which may be a secret. Throws ReleaseInterrupted.
std::vector<std::string> notify_of(const ReleaseRecord& record, const std::vector<Receiver>& receivers);

}  // namespace serin::cli
