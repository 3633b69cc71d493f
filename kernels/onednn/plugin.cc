// plugin.cc: the one symbol of libserin_onednn.so. No exception of oneDNN crosses it, each is caught and becomes a refusal.

#include "kernels/onednn/plugin.h"

#include <omp.h>

#include "kernels/onednn/program.h"

namespace serin::kernels::onednn {

namespace {

using PrepareFn = std::unique_ptr<Kernel> (*)(const Library&, const OpDesc&, PrepareContext&, std::string& why);

KernelRow make_row(const Library& library, PrepareFn prepare) {
  return {"onednn", [library, prepare](const OpDesc& desc, PrepareContext& context, std::string& why) -> std::unique_ptr<Kernel> {
            if (!is_fixed_f32(desc, why)) return nullptr;
            omp_set_num_threads(context.threads);  // of this thread; a primitive keeps the number it was created with
            try {
              return prepare(library, desc, context, why);
            } catch (const dnnl::error& error) {
              why = std::string("oneDNN: ") + error.what();
              return nullptr;
            }
          }};
}

/// Must be called before oneDNN makes its first primitive; a later backend in the same process gets what the first one chose.
void limit_instruction_set(Isa isa) {
  if (isa == Isa::kAvx2) dnnl_set_max_cpu_isa(dnnl_cpu_isa_avx2);
  if (isa == Isa::kScalar) dnnl_set_max_cpu_isa(dnnl_cpu_isa_sse41);
}

}  // namespace

}  // namespace serin::kernels::onednn

extern "C" __attribute__((visibility("default"))) bool serin_onednn_plugin(uint32_t version, serin::kernels::Isa isa,
                                                                           const serin::kernels::cpu::Simd& simd,
                                                                           serin::kernels::onednn::Plugin* plugin) {
  using namespace serin::kernels::onednn;
  if (version != kPluginVersion) return false;
  try {
    limit_instruction_set(isa);
    dnnl::set_primitive_cache_capacity(128);  // kernels hold their primitives; the cache only helps the next instance of the same model
    const Library library{dnnl::engine(dnnl::engine::kind::cpu, 0), simd};
    const dnnl_version_t* v = dnnl_version();
    plugin->library = "oneDNN " + std::to_string(v->major) + "." + std::to_string(v->minor) + "." + std::to_string(v->patch);
    plugin->conv = {make_row(library, prepare_conv)};
    plugin->matmul = {make_row(library, prepare_matmul)};
    return true;
  } catch (const dnnl::error&) {
    return false;
  }
}
