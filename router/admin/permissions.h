// permissions.h: The answer to /v1/me, described once (runtime/base/schema.h).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "router/admin/access.h"
#include "runtime/base/schema.h"

namespace serin::router {

struct Permissions {
  std::string name;
  Role role = Role::kViewer;
  std::vector<std::string_view> may;
};
inline constexpr auto kPermissions = schema::object<Permissions>(
    "Caller", "The caller, and the commands that it may use.", schema::field("name", &Permissions::name, "Of its token, or its address."),
    schema::field("role", &Permissions::role, "Each role includes the permissions of the one before it."),
    schema::field("may", &Permissions::may, "Commands, and start."));

}  // namespace serin::router
