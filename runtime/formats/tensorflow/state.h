// state.h: the contents of variables and tables. The file says them as programs: a restore operation assigns tensors of the checkpoint to
// variables, and an initialiser fills tables. This follows both, without running anything else.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "runtime/formats/tensorflow/bundle.h"
#include "runtime/formats/tensorflow/program.h"

namespace serin::formats::tf {

/// A lookup table that never changes.
struct Table {
  graph::ConstantPtr keys, values;
};

class State {
 public:
  /// `file` and `begin`: saved_model.pb, for constants in it. `shared`: weights that other graphs of the file have read, or null.
  State(const Program& program, std::string folder, std::shared_ptr<const InputFile> file, const std::byte* begin,
        std::map<std::string, graph::ConstantPtr, std::less<>>* shared = nullptr)
      : program_(program), folder_(std::move(folder)), file_(std::move(file)), begin_(begin), shared_(shared) {}

  Status load();

  /// The tensor of a variable; `handle` is a VarHandleOp or VariableV2 of the main graph.
  Result<graph::ConstantPtr> variable(const NodeDef& handle);
  /// The contents of a HashTableV2.
  Result<Table> table(const NodeDef& handle);
  /// A constant of the file, such as the value of a Const node.
  Result<graph::ConstantPtr> constant(Bytes proto) const;
  Status unchanged() const { return bundle_.unchanged(); }
  std::map<std::string, graph::ConstantPtr, std::less<>>* shared() const { return shared_; }

 private:
  struct Frame;
  /// Where a value comes from: a node that is no Identity, outside of the calls that pass it on.
  struct Origin {
    const NodeDef* node = nullptr;
    size_t index = 0;
    const Frame* frame = nullptr;  ///< of the node
  };
  /// One body while it is followed, with the origins of its arguments.
  struct Frame {
    const Body* body;
    std::map<std::string_view, Origin> arguments;
  };
  struct TableSource {
    Origin keys, values;            ///< constants
    const NodeDef* file = nullptr;  ///< or InitializeTableFromTextFileV2
    Origin file_name;
  };

  Result<graph::ConstantPtr> weight(std::string_view name);
  Result<graph::ConstantPtr> constant_of(const Origin& origin, int depth = 0) const;
  Result<graph::ConstantPtr> numbers_of(const Origin& origin, int depth) const;
  Origin origin_of(const Frame& frame, std::string_view edge) const;
  Status follow_operation(std::string_view name);
  Status follow_node(const NodeDef& node, const Frame& frame, int depth);
  Status follow_call(const NodeDef& node, const Frame& frame, int depth);
  Status assign(const NodeDef& node, const Frame& frame);
  Result<std::string> restored_name(const Origin& restore) const;
  Result<Table> text_table(const TableSource& source) const;

  const Program& program_;
  std::string folder_;
  std::shared_ptr<const InputFile> file_;
  const std::byte* begin_;
  std::map<std::string, graph::ConstantPtr, std::less<>>* shared_;
  Bundle bundle_;
  std::map<const NodeDef*, std::string> restored_;             ///< variable -> name in the checkpoint
  std::map<std::string_view, const NodeDef*> restored_names_;  ///< shared_name -> a variable of the map above
  std::map<const NodeDef*, Origin> assigned_;                  ///< variables that the file itself initialises
  std::map<const NodeDef*, TableSource> tables_;
  std::deque<Frame> frames_;
  size_t followed_ = 0;
};

}  // namespace serin::formats::tf
