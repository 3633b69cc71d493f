# embed.cmake: FILES -> OUT, a C++ file that holds them gzipped (embedded_files.h). `gzip -n`: no name and no date, so the same bytes every time.
set(arrays "")
set(rows "")
foreach(file IN LISTS FILES)
  get_filename_component(name ${file} NAME)
  execute_process(COMMAND gzip -9nc ${file} OUTPUT_FILE ${OUT}.gz COMMAND_ERROR_IS_FATAL ANY)
  file(READ ${OUT}.gz bytes HEX)
  string(REGEX REPLACE "(..)" "0x\\1," bytes ${bytes})
  list(LENGTH rows index)
  string(APPEND arrays "constexpr unsigned char kFile${index}[] = {${bytes}};\n")
  list(APPEND rows "{\"${name}\", kFile${index}}")
endforeach()
list(JOIN rows ", " rows)
file(WRITE ${OUT} "#include \"router/dashboard/embedded_files.h\"
namespace serin::router {
namespace {
${arrays}}  // namespace
std::vector<EmbeddedFile> embedded_files() { return {${rows}}; }
}  // namespace serin::router
")
file(REMOVE ${OUT}.gz)
