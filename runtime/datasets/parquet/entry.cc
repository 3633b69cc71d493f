// entry.cc: the one symbol of libserin_parquet.so.

#include "runtime/datasets/parquet/plugin.h"

#include <arrow/config.h>

#include <exception>

#include "runtime/datasets/parquet/parquet_dataset.h"
#include "runtime/datasets/parquet/table_writer.h"

extern "C" __attribute__((visibility("default"))) bool serin_parquet_plugin(uint32_t version, serin::datasets::columnar::Plugin* plugin) {
  using namespace serin::datasets::columnar;
  if (version != kPluginVersion) return false;
  try {
    *plugin = {
        .library = "Arrow " + arrow::GetBuildInfo().version_string, .open = open_dataset, .encode = encode_block, .write = write_table};
    return true;
  } catch (const std::exception&) {
    return false;
  }
}
