// Sconce as a delegate of ExecuTorch's own runtime, under the id that its Vulkan exporter writes.
//
// A delegate is a model with one method and one state. ExecuTorch runs the rest of the program: its
// tensors are copied in and out at every call. The library registers itself when it is loaded.
#include "sconce.h"

#include <executorch/runtime/backend/interface.h>
#include <executorch/runtime/core/exec_aten/util/dim_order_util.h>
#include <executorch/runtime/core/exec_aten/util/tensor_util.h>
#include <executorch/runtime/platform/log.h>
#include <executorch/runtime/platform/runtime.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace {

using executorch::aten::Tensor;
using executorch::runtime::ArrayRef;
using executorch::runtime::BackendExecutionContext;
using executorch::runtime::BackendInitContext;
using executorch::runtime::CompileSpec;
using executorch::runtime::DelegateHandle;
using executorch::runtime::Error;
using executorch::runtime::EValue;
using executorch::runtime::FreeableBuffer;
using executorch::runtime::NamedDataMap;
using executorch::runtime::Result;
using executorch::runtime::Span;

constexpr const char *kId = "VulkanBackend";

std::atomic<uint64_t> n_calls, bytes_in, bytes_out; // since the library was loaded

Error told(const sconce_error &err) {
  ET_LOG(Error, "sconce: %s: %s", sconce_status_name(err.status), err.text);
  switch (err.status) {
  case SCONCE_BAD_ARGUMENT:
    return Error::InvalidArgument;
  case SCONCE_BAD_FILE:
  case SCONCE_BAD_GRAPH:
  case SCONCE_UNSUPPORTED:
    return Error::DelegateInvalidCompatibility;
  case SCONCE_NO_MEMORY:
  case SCONCE_NO_GPU_MEMORY:
    return Error::DelegateMemoryAllocationFailed;
  case SCONCE_IO_ERROR:
    return Error::AccessFailed;
  default:
    return Error::Internal;
  }
}

// ---- named data ---------------------------------------------------------------------------------

// ExecuTorch tells the size of a key by loading it. One key is held at a time, so that the weights
// are never in host memory all at once; a loader that maps the file makes both free.
struct NamedData {
  const NamedDataMap *map;
  std::string key;
  std::optional<FreeableBuffer> bytes;

  bool load(const char *wanted) {
    if (bytes && key == wanted) return true;
    bytes.reset();
    if (!map) return false;
    Result<FreeableBuffer> found = map->get_data(wanted);
    if (!found.ok()) return false;
    bytes.emplace(std::move(found.get()));
    key = wanted;
    return true;
  }

  static bool find(void *user, const char *wanted, uint64_t *size) {
    auto *named = static_cast<NamedData *>(user);
    if (!named->load(wanted)) return false;
    *size = named->bytes->size();
    return true;
  }

  static sconce_status read(void *user, const char *wanted, uint64_t offset, void *out,
                            size_t size) {
    auto *named = static_cast<NamedData *>(user);
    if (!named->load(wanted) || offset + size > named->bytes->size()) return SCONCE_IO_ERROR;
    std::memcpy(out, static_cast<const char *>(named->bytes->data()) + offset, size);
    return SCONCE_OK;
  }
};

// ---- arguments ----------------------------------------------------------------------------------

bool is_row_major(const Tensor &t) {
  return executorch::runtime::is_contiguous_dim_order(t.dim_order().data(), t.dim_order().size());
}

// Between a tensor whose dims lie in another order, such as channels-last, and row-major elements.
void reorder(const Tensor &t, uint8_t *rows, bool in) {
  const size_t size = static_cast<size_t>(t.element_size());
  uint8_t *at = static_cast<uint8_t *>(t.mutable_data_ptr());
  std::vector<ssize_t> index(static_cast<size_t>(t.dim()));
  for (ssize_t left = t.numel(); left > 0; left--, rows += size) {
    std::memcpy(in ? rows : at, in ? at : rows, size);
    for (ssize_t d = t.dim() - 1; d >= 0; d--) {
      const ssize_t step = static_cast<ssize_t>(size) * t.strides()[d];
      at += step;
      if (++index[d] < t.size(d)) break;
      at -= step * t.size(d);
      index[d] = 0;
    }
  }
}

// An argument's dtype and dims, as an input that looks like `want`. A live scalar is an Int, or a
// tensor of one element.
bool describe(const EValue &value, const sconce_tensor &want, sconce_tensor *out) {
  *out = {};
  out->dtype = SCONCE_INT64;
  out->size = sizeof(int64_t);
  if (value.isInt()) return want.rank == 0;
  if (!value.isTensor() || value.toTensor().dim() > SCONCE_MAX_RANK) return false;
  const Tensor &t = value.toTensor();
  out->dtype = static_cast<sconce_dtype>(t.scalar_type());
  out->rank = want.rank == 0 && t.numel() == 1 ? 0 : static_cast<uint32_t>(t.dim());
  out->size = t.nbytes();
  for (uint32_t i = 0; i < out->rank; i++) out->dims[i] = static_cast<uint32_t>(t.size(i));
  return true;
}

bool is_float(sconce_dtype d) {
  return d == SCONCE_FLOAT16 || d == SCONCE_FLOAT32 || d == SCONCE_FLOAT64;
}

// Could the argument be this input? Dims are upper bounds.
bool fits(const EValue &value, const sconce_tensor &want) {
  sconce_tensor t;
  if (!describe(value, want, &t) || t.rank != want.rank) return false;
  for (uint32_t i = 0; i < t.rank; i++)
    if (t.dims[i] > want.dims[i]) return false;
  return is_float(t.dtype) == is_float(want.dtype) &&
         (t.dtype == SCONCE_BOOL) == (want.dtype == SCONCE_BOOL);
}

template <typename To, typename From> void convert(void *out, const void *in, size_t n) {
  for (size_t i = 0; i < n; i++)
    static_cast<To *>(out)[i] = static_cast<To>(static_cast<const From *>(in)[i]);
}

// 64-bit tensors outside are 32-bit ones inside; a live scalar is an int64.
bool convert(sconce_dtype to, void *out, const sconce_tensor &from, size_t n) {
  if (to == from.dtype)
    std::memcpy(out, from.data, from.size);
  else if (to == SCONCE_INT64 && from.dtype == SCONCE_INT32)
    convert<int64_t, int32_t>(out, from.data, n);
  else if (to == SCONCE_INT32 && from.dtype == SCONCE_INT64)
    convert<int32_t, int64_t>(out, from.data, n);
  else if (to == SCONCE_FLOAT64 && from.dtype == SCONCE_FLOAT32)
    convert<double, float>(out, from.data, n);
  else
    return false;
  return true;
}

// ---- delegates ----------------------------------------------------------------------------------

struct Delegate {
  sconce_model *model = nullptr;
  sconce_method *method = nullptr;
  sconce_state *state = nullptr;
  const sconce_method_info *info = nullptr;
  int64_t number = 0;        // an argument that is an integer
  std::vector<uint8_t> rows; // one whose dims are not in row-major order

  ~Delegate() {
    sconce_state_close(state);
    sconce_method_close(method);
    sconce_model_close(model);
  }

  // ExecuTorch keeps `blob` until the delegate is destroyed.
  sconce_status open(sconce_device *device, const FreeableBuffer &blob, const NamedDataMap *map,
                     sconce_error *err) {
    NamedData named{map, {}, {}};
    sconce_model_desc desc = {};
    desc.program.data = blob.data();
    desc.program.size = blob.size();
    desc.named_data = {NamedData::find, NamedData::read, &named};
    sconce_status status = sconce_model_open(&model, device, &desc, err);
    if (status == SCONCE_OK) status = sconce_method_open(&method, model, nullptr, err);
    if (status == SCONCE_OK) status = sconce_state_open(&state, method, err);
    if (status == SCONCE_OK) info = sconce_method_describe(method);
    return status;
  }

  // Row-major, until the next argument.
  const void *elements(const EValue &value) {
    if (value.isInt()) {
      number = value.toInt();
      return &number;
    }
    const Tensor &t = value.toTensor();
    if (is_row_major(t)) return t.const_data_ptr();
    rows.resize(t.nbytes());
    reorder(t, rows.data(), true);
    return rows.data();
  }

  Error store(const sconce_tensor &from, EValue &to) {
    if (to.isInt() && from.dtype == SCONCE_INT64) {
      to = EValue(*static_cast<const int64_t *>(from.data));
      return Error::Ok;
    }
    if (!to.isTensor()) return Error::InvalidType;
    Tensor &t = to.toTensor();
    executorch::aten::SizesType dims[SCONCE_MAX_RANK];
    std::copy(from.dims, from.dims + from.rank, dims);
    if (from.rank != 0 || t.numel() != 1) {
      const Error error = executorch::runtime::resize_tensor(
          t, ArrayRef<executorch::aten::SizesType>(dims, from.rank));
      if (error != Error::Ok) return error;
    }
    const bool direct = is_row_major(t);
    if (!direct) rows.resize(t.nbytes());
    if (!convert(static_cast<sconce_dtype>(t.scalar_type()),
                 direct ? t.mutable_data_ptr() : rows.data(), from, static_cast<size_t>(t.numel())))
      return Error::InvalidType;
    if (!direct) reorder(t, rows.data(), false);
    return Error::Ok;
  }

  // The exporter leaves an input that nothing reads out of the graph but not out of the call, so
  // inputs are matched in order, skipping what does not fit.
  Error set_inputs(Span<EValue *> args) {
    sconce_error err = {};
    if (args.size() < info->n_inputs + info->n_outputs) {
      ET_LOG(Error,
             "sconce: %zu arguments for %u inputs and %u outputs of the delegate (if the model "
             "changes a buffer: export with alias_buffer_mutations)",
             args.size(), info->n_inputs, info->n_outputs);
      return Error::InvalidArgument;
    }
    size_t at = 0, spare = args.size() - info->n_inputs - info->n_outputs;
    for (uint32_t i = 0; i < info->n_inputs; i++, at++) {
      for (; spare && !fits(*args[at], info->inputs[i]); spare--) at++;
      sconce_tensor t;
      if (!describe(*args[at], info->inputs[i], &t)) {
        ET_LOG(Error, "sconce: argument %zu is no tensor of rank %u", at, info->inputs[i].rank);
        return Error::InvalidArgument;
      }
      t.data = elements(*args[at]);
      if (sconce_state_set_input(state, i, &t, &err) != SCONCE_OK) return told(err);
      bytes_in += t.size;
    }
    if (spare == 0) return Error::Ok;
    ET_LOG(Error, "sconce: %zu arguments from %zu on are neither inputs nor outputs", spare, at);
    return Error::NotSupported;
  }

  Error run(Span<EValue *> args) {
    sconce_error err = {};
    ET_CHECK_OK_OR_RETURN_ERROR(set_inputs(args));
    if (sconce_state_run(state, nullptr, &err) != SCONCE_OK) return told(err);
    n_calls++;
    for (uint32_t i = 0; i < info->n_outputs; i++) {
      sconce_tensor t;
      if (sconce_state_output(state, i, &t, &err) != SCONCE_OK) return told(err);
      const size_t at = args.size() - info->n_outputs + i;
      const Error error = store(t, *args[at]);
      bytes_out += t.size;
      if (error == Error::Ok) continue;
      ET_LOG(Error, "sconce: output %u, %s, does not go into argument %zu", i,
             sconce_dtype_name(t.dtype), at);
      return error;
    }
    return Error::Ok;
  }
};

// ---- the backend --------------------------------------------------------------------------------

void write_log(void *, sconce_log_level level, const char *text) {
  if (level == SCONCE_LOG_ERROR)
    ET_LOG(Error, "sconce: %s", text);
  else
    ET_LOG(Info, "sconce: %s", text);
}

class SconceBackend final : public executorch::runtime::BackendInterface {
public:
  bool is_available() const override {
    std::lock_guard<std::mutex> hold(lock_);
    return device() != nullptr;
  }

  Result<DelegateHandle *> init(BackendInitContext &context, FreeableBuffer *blob,
                                ArrayRef<CompileSpec>) const override {
    std::lock_guard<std::mutex> hold(lock_);
    sconce_error err = {};
    for (int tries = 2; tries > 0; tries--) {
      if (!device()) return Error::NotSupported;
      auto delegate = std::make_unique<Delegate>();
      if (delegate->open(device_, *blob, context.get_named_data_map(), &err) == SCONCE_OK)
        return delegate.release();
      if (err.status != SCONCE_DEVICE_LOST) break;
      sconce_device_close(device_); // others on it keep it until they are destroyed
      device_ = nullptr;
    }
    return told(err);
  }

  Error execute(BackendExecutionContext &, DelegateHandle *handle,
                Span<EValue *> args) const override {
    return static_cast<Delegate *>(handle)->run(args);
  }

  void destroy(DelegateHandle *handle) const override { delete static_cast<Delegate *>(handle); }

private:
  // One for the process, opened when it is first needed; programs that come and go share its
  // compiled kernels. Nothing closes it: a driver's threads do not outlive static destructors well.
  sconce_device *device() const {
    sconce_error err = {};
    sconce_device_desc desc = {};
    desc.log.write = write_log;
    if (!device_ && sconce_device_open(&device_, &desc, &err) != SCONCE_OK) (void)told(err);
    return device_;
  }

  mutable std::mutex lock_;
  mutable sconce_device *device_ = nullptr;
};

const char *register_backend() {
  executorch::runtime::runtime_init(); // logging needs it
  if (executorch::runtime::get_backend_class(kId))
    return "another library has registered a backend as VulkanBackend already: load Sconce before "
           "it, or build ExecuTorch without it";
  static SconceBackend backend;
  if (executorch::runtime::register_backend({kId, &backend}) != Error::Ok)
    return "ExecuTorch did not register VulkanBackend: it has too many backends";
  return nullptr;
}

const char *const problem = [] {
  const char *said = register_backend();
  if (said) ET_LOG(Error, "sconce: %s", said);
  return said;
}();

} // namespace

#define EXPORTED extern "C" __attribute__((visibility("default")))

// NULL where ExecuTorch will use Sconce, else a sentence that says why it will not.
EXPORTED const char *sconce_executorch_problem(void) { return problem; }

// What has crossed the border so far: calls of delegates, bytes that went in, bytes that came out.
EXPORTED void sconce_executorch_counts(uint64_t out[3]) {
  out[0] = n_calls;
  out[1] = bytes_in;
  out[2] = bytes_out;
}
