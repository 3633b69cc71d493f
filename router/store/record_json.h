// record_json.h: Converts records to and from the JSON in a shared store.
//
// Field names are a contract between routers of different versions: fields are added, never changed.
#pragma once

#include <boost/json.hpp>
#include <string>

#include "router/store/shared_store.h"

namespace serin::store {

boost::json::object to_json(const ServiceRecord& record);
boost::json::object to_json(const HistoryEntry& entry);
boost::json::object to_json(const Trip& trip);
boost::json::object to_json(const Member& member);

// kCorrupt if a field is missing or has the wrong type.
Result<ServiceRecord> service_from_json(const boost::json::value& value);
Result<HistoryEntry> entry_from_json(const boost::json::value& value);
Result<Trip> trip_from_json(const boost::json::value& value);
Result<Member> member_from_json(const boost::json::value& value);

}  // namespace serin::store
