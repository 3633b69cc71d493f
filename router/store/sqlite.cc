// sqlite.cc: calls SQLite, and converts its result codes to the codes of result.h. Extended codes are on, because only they distinguish a
// full disk from a broken one.

#include "router/store/sqlite.h"

#include <fmt/format.h>
#include <sqlite3.h>

namespace serin::store {
namespace {

constexpr int kBusyMilliseconds = 2000;  // somebody looks at the file with a tool of theirs

Code code_of(int result) {
  switch (result & 0xff) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB: return Code::kCorrupt;
    case SQLITE_PERM:
    case SQLITE_READONLY:
    case SQLITE_AUTH:
    case SQLITE_CANTOPEN: return Code::kPermissionDenied;
    case SQLITE_BUSY:
    case SQLITE_LOCKED: return Code::kUnavailable;
    case SQLITE_ERROR: return Code::kInternal;
    default: return Code::kIo;
  }
}

Error error_of(sqlite3* database) {
  const int result = sqlite3_extended_errcode(database);
  return Error{code_of(result), fmt::format("{} (SQLite {})", sqlite3_errmsg(database), result)};
}

}  // namespace

void Statement::Finalize::operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }

void Statement::bind(int index, std::string_view text) {
  sqlite3_bind_text(statement_.get(), index, text.data(), static_cast<int>(text.size()), SQLITE_TRANSIENT);
}
void Statement::bind(int index, int64_t value) { sqlite3_bind_int64(statement_.get(), index, value); }
void Statement::bind(int index, double value) { sqlite3_bind_double(statement_.get(), index, value); }

Result<bool> Statement::step() {
  const int result = sqlite3_step(statement_.get());
  if (result == SQLITE_ROW) return true;
  if (result == SQLITE_DONE) return false;
  return error_of(sqlite3_db_handle(statement_.get()));
}

Status Statement::run() {
  while (true) {
    SERIN_TRY(const bool row, step());
    if (!row) return {};
  }
}

void Statement::reset() { sqlite3_reset(statement_.get()); }

std::string Statement::text(int column) const {
  const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(statement_.get(), column));
  return bytes == nullptr ? std::string() : std::string(bytes, static_cast<size_t>(sqlite3_column_bytes(statement_.get(), column)));
}
int64_t Statement::integer(int column) const { return sqlite3_column_int64(statement_.get(), column); }
double Statement::number(int column) const { return sqlite3_column_double(statement_.get(), column); }

void Database::Close::operator()(sqlite3* database) const { sqlite3_close(database); }

Result<Database> Database::open(const std::string& path) {
  Database database;
  sqlite3* raw = nullptr;
  const int result = sqlite3_open_v2(path.c_str(), &raw, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, nullptr);
  database.database_.reset(raw);
  if (raw == nullptr) return Error{Code::kInternal, "SQLite: out of memory"};
  if (result != SQLITE_OK) return error_of(raw);
  sqlite3_extended_result_codes(raw, 1);
  sqlite3_busy_timeout(raw, kBusyMilliseconds);
  return database;
}

Result<Statement> Database::prepare(std::string_view sql) {
  Statement statement;
  sqlite3_stmt* raw = nullptr;
  const int result = sqlite3_prepare_v2(database_.get(), sql.data(), static_cast<int>(sql.size()), &raw, nullptr);
  statement.statement_.reset(raw);
  if (result != SQLITE_OK) return error_of(database_.get());
  return statement;
}

Status Database::execute(const std::string& sql) {
  const int result = sqlite3_exec(database_.get(), sql.c_str(), nullptr, nullptr, nullptr);
  if (result == SQLITE_OK) return {};
  sync_failed_ = sync_failed_ || result == SQLITE_IOERR_FSYNC || result == SQLITE_IOERR_DIR_FSYNC;
  return error_of(database_.get());
}

Result<int64_t> Database::integer(std::string_view sql) {
  SERIN_TRY(Statement statement, prepare(sql));
  SERIN_TRY(const bool row, statement.step());
  return row ? statement.integer(0) : 0;
}

Result<std::string> Database::text(std::string_view sql) {
  SERIN_TRY(Statement statement, prepare(sql));
  SERIN_TRY(const bool row, statement.step());
  return row ? statement.text(0) : std::string();
}

Result<Transaction> Transaction::begin(Database& database) {
  SERIN_CHECK(database.execute("BEGIN IMMEDIATE"));
  return Transaction(database);
}

Status Transaction::commit() {
  SERIN_CHECK(database_->execute("COMMIT"));
  database_ = nullptr;
  return {};
}

Transaction::~Transaction() {
  if (database_ != nullptr) (void)database_->execute("ROLLBACK").has_value();
}

}  // namespace serin::store
