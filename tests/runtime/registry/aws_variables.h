// aws_variables.h: for tests: a process without settings of AWS, but for those that a test sets, and with an empty home.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

#include "runtime/base/file.h"
#include "runtime/base/temporary_folder.h"

namespace serin::registry {

class AwsVariables {
 public:
  AwsVariables() {
    for (const char* name : kNames) ::unsetenv(name);
    set("HOME", home());
    std::filesystem::create_directory(home() + "/.aws");
  }
  AwsVariables(const AwsVariables&) = delete;
  AwsVariables& operator=(const AwsVariables&) = delete;
  ~AwsVariables() {
    for (const char* name : kNames) ::unsetenv(name);
  }

  const std::string& home() const { return folder_.path(); }
  static void set(const char* name, const std::string& value) { ::setenv(name, value.c_str(), 1); }
  /// A file below the home.
  std::string write(const std::string& path, const std::string& text, unsigned mode = 0600) const {
    const std::string whole = home() + "/" + path;
    (void)write_file_atomically(whole, text, mode);
    return whole;
  }

 private:
  static constexpr const char* kNames[] = {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN",           "AWS_PROFILE",
                                           "AWS_REGION",        "AWS_DEFAULT_REGION",    "AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE",
                                           "AWS_ENDPOINT_URL",  "AWS_ENDPOINT_URL_S3",   "AWS_WEB_IDENTITY_TOKEN_FILE"};
  TemporaryFolder folder_ = TemporaryFolder::make("aws").value();
};

}  // namespace serin::registry
