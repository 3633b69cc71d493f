// sqlite.h: The few SQLite calls that the store makes, with errors as Result.
//
//   SERIN_TRY(Database database, Database::open("router.db"));
//   SERIN_TRY(Statement select, database.prepare("SELECT epoch FROM services WHERE name = ?"));
//   select.bind(1, name);
//   SERIN_TRY(const bool row, select.step());
//
// kCorrupt always means that the file is damaged. Not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "runtime/base/result.h"

struct sqlite3;
struct sqlite3_stmt;

namespace serin::store {

class Statement {
 public:
  void bind(int index, std::string_view text);
  void bind(int index, int64_t value);
  void bind(int index, double value);
  /// True: a row can be read. False: done.
  Result<bool> step();
  /// To the end, ignoring rows.
  Status run();
  void reset();
  std::string text(int column) const;
  int64_t integer(int column) const;
  double number(int column) const;

 private:
  friend class Database;
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
};

class Database {
 public:
  /// Creates the file if there is none.
  static Result<Database> open(const std::string& path);
  Result<Statement> prepare(std::string_view sql);
  /// A COMMIT has failed because the disk did not confirm the write.
  bool sync_failed() const { return sync_failed_; }
  /// Statements without parameters; rows are ignored.
  Status execute(const std::string& sql);
  /// The first column of the first row.
  Result<int64_t> integer(std::string_view sql);
  Result<std::string> text(std::string_view sql);

 private:
  struct Close {
    void operator()(sqlite3* database) const;
  };
  std::unique_ptr<sqlite3, Close> database_;
  bool sync_failed_ = false;
};

/// BEGIN IMMEDIATE ... COMMIT; rolls back unless commit() was called.
class Transaction {
 public:
  static Result<Transaction> begin(Database& database);
  Transaction(Transaction&& other) noexcept : database_(std::exchange(other.database_, nullptr)) {}
  ~Transaction();
  Status commit();

 private:
  explicit Transaction(Database& database) : database_(&database) {}
  Database* database_;
};

}  // namespace serin::store
