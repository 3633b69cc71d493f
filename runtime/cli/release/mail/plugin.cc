// plugin.cc: the one symbol of libserin_mail.so. libcurl speaks SMTP, builds the message (MIME) and encodes its parts. No exception crosses it.
//
// Nothing of a name can become a header of its own: a subject that is not printable ASCII is sent as base64 (RFC 2047), and addresses were
// checked when the policy was read.

#include "runtime/cli/release/mail/plugin.h"

#include <curl/curl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <openssl/evp.h>

#include <algorithm>
#include <exception>
#include <memory>

namespace serin::cli::mail {
namespace {

using Curl = std::unique_ptr<CURL, decltype(&curl_easy_cleanup)>;
using Mime = std::unique_ptr<curl_mime, decltype(&curl_mime_free)>;

class List {
 public:
  List() = default;
  List(const List&) = delete;
  List& operator=(const List&) = delete;
  ~List() { curl_slist_free_all(list_); }
  void add(const std::string& text) { list_ = curl_slist_append(list_, text.c_str()); }
  curl_slist* get() const { return list_; }

 private:
  curl_slist* list_ = nullptr;
};

bool is_plain(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; }) && text.find("=?") == std::string_view::npos;
}

/// RFC 2047: lines of at most 76 characters, a word each, that end between two characters of UTF-8. The first line begins with "Subject: ".
std::string encoded_words(std::string_view text) {
  constexpr size_t kMostBytes = 45, kMostOfFirst = 39;  // 60 and 52 characters of base64
  std::string words;
  while (!text.empty()) {
    size_t bytes = std::min(words.empty() ? kMostOfFirst : kMostBytes, text.size());
    while (bytes < text.size() && bytes > 1 && (static_cast<unsigned char>(text[bytes]) & 0xc0) == 0x80) --bytes;
    std::string base64(4 * ((bytes + 2) / 3), '\0');
    EVP_EncodeBlock(reinterpret_cast<unsigned char*>(base64.data()), reinterpret_cast<const unsigned char*>(text.data()),
                    static_cast<int>(bytes));
    words += fmt::format("{}=?UTF-8?B?{}?=", words.empty() ? "" : "\r\n ", base64);
    text.remove_prefix(bytes);
  }
  return words;
}

std::string header_text(std::string text) {
  constexpr size_t kMostPlain = 70;
  std::ranges::replace_if(text, [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; }, ' ');
  return is_plain(text) && text.size() <= kMostPlain ? text : encoded_words(text);
}

std::string listed(const std::vector<std::string>& addresses) {
  std::string text;
  for (const std::string& address : addresses) text += fmt::format("{}<{}>", text.empty() ? "" : ",\r\n ", address);
  return text;
}

void add_headers(const Mail& mail, List& headers) {
  const auto now = std::chrono::time_point_cast<std::chrono::seconds>(std::chrono::system_clock::now());
  headers.add(fmt::format("Date: {:%a, %d %b %Y %H:%M:%S} +0000", fmt::gmtime(now)));
  headers.add(fmt::format("From: <{}>", mail.from));
  headers.add("To: " + listed(mail.to));
  headers.add("Subject: " + header_text(mail.subject));
  headers.add("Auto-Submitted: auto-generated");  // RFC 3834: nobody answers it automatically
}

void add_part(curl_mime* mime, const std::string& text, const char* type, const char* file_name) {
  curl_mimepart* const part = curl_mime_addpart(mime);
  curl_mime_data(part, text.data(), text.size());
  curl_mime_type(part, type);
  curl_mime_encoder(part, "base64");
  if (file_name != nullptr) curl_mime_filename(part, file_name);
}

/// Login, encryption, addresses.
void set_server(CURL* curl, const Mail& mail, const List& to) {
  curl_easy_setopt(curl, CURLOPT_URL, mail.server.c_str());
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "smtp,smtps");
  curl_easy_setopt(curl, CURLOPT_PROXY, "");  // none of the environment
  curl_easy_setopt(curl, CURLOPT_NETRC, static_cast<long>(CURL_NETRC_IGNORED));
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, static_cast<long>(mail.patience.count()));
  curl_easy_setopt(curl, CURLOPT_USE_SSL, static_cast<long>(mail.secure ? CURLUSESSL_ALL : CURLUSESSL_NONE));
  curl_easy_setopt(curl, CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  if (!mail.ca.empty()) {
    curl_easy_setopt(curl, CURLOPT_CAINFO, mail.ca.c_str());
    curl_easy_setopt(curl, CURLOPT_CAPATH, nullptr);
  }
  if (!mail.user.empty()) {
    curl_easy_setopt(curl, CURLOPT_USERNAME, mail.user.c_str());
    curl_easy_setopt(curl, CURLOPT_PASSWORD, mail.password.c_str());
  }
  curl_easy_setopt(curl, CURLOPT_MAIL_FROM, mail.from.c_str());
  curl_easy_setopt(curl, CURLOPT_MAIL_RCPT, to.get());
}

Status send_with_curl(const Mail& mail) {
  const Curl curl(curl_easy_init(), &curl_easy_cleanup);
  const Mime mime(curl_mime_init(curl.get()), &curl_mime_free);
  if (!curl || !mime) return Error{Code::kInternal, "libcurl cannot begin"};
  List headers, to;
  for (const std::string& address : mail.to) to.add(address);
  add_headers(mail, headers);
  add_part(mime.get(), mail.text, "text/plain; charset=utf-8", nullptr);
  add_part(mime.get(), mail.file, "application/json", mail.file_name.c_str());
  set_server(curl.get(), mail, to);
  curl_easy_setopt(curl.get(), CURLOPT_HTTPHEADER, headers.get());
  curl_easy_setopt(curl.get(), CURLOPT_MIMEPOST, mime.get());
  const CURLcode done = curl_easy_perform(curl.get());
  if (done == CURLE_OK) return {};
  long code = 0;
  curl_easy_getinfo(curl.get(), CURLINFO_RESPONSE_CODE, &code);
  const std::string answered = code >= 400 ? fmt::format(" (it answers {})", code) : std::string();
  const bool late = done == CURLE_OPERATION_TIMEDOUT;
  return Error{late ? Code::kDeadlineExceeded : Code::kUnavailable, fmt::format("{}{}", curl_easy_strerror(done), answered)};
}

Status send(const Mail& mail) {
  try {
    return send_with_curl(mail);
  } catch (const std::exception& error) {
    return Error{Code::kInternal, error.what()};
  }
}

}  // namespace
}  // namespace serin::cli::mail

extern "C" __attribute__((visibility("default"))) bool serin_mail_plugin(uint32_t version, serin::cli::mail::Plugin* plugin) {
  using namespace serin::cli::mail;
  if (version != kPluginVersion || curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) return false;
  try {
    *plugin = {.library = fmt::format("libcurl/{}", curl_version_info(CURLVERSION_NOW)->version), .send = send};
    return true;
  } catch (const std::exception&) {
    return false;
  }
}
