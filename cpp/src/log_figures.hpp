// The figures of one start of an engine, sorted: one value for each field, caches, pools and devices.
#pragma once

#include <optional>

#include "kvcap/catalogue.hpp"
#include "log_scan.hpp"

namespace kvcap::log {

/// One cache as llama.cpp prints it. Bytes are 0 where they are not printed.
struct Cache {
  std::string_view kind = "full";  ///< full, window, latent, recurrent
  u32 line = 0;
  u64 cells = 0, layers = 0, seqs = 0, streams = 1, copies = 0;
  u64 size = 0;
  u64 k = 0, v = 0;  ///< of a recurrent cache: R (convolutions and shifts) and S (states)
  u64 k_tolerance = 0, v_tolerance = 0;
  std::string_view k_type, v_type;
  bool named = false;  ///< `kind` stands
  [[nodiscard]] bool recurrent() const noexcept { return kind == "recurrent"; }
  [[nodiscard]] u64 bytes() const noexcept { return k + v != 0 ? k + v : size; }
};

/// One pool as SGLang prints it.
struct Pool {
  int rank = -1;
  u64 tokens = 0, k = 0, v = 0, kv = 0;
  u64 tolerance = 0;
  [[nodiscard]] u64 bytes() const noexcept { return kv != 0 ? kv : k + v; }
};

struct Device {
  std::string_view name;
  u64 model = 0, kv = 0, state = 0, compute = 0;
  [[nodiscard]] bool host() const noexcept { return name.starts_with("CPU") || name.ends_with("_Host"); }
};

class Figures {
 public:
  explicit Figures(const Scan& scan);

  [[nodiscard]] const std::vector<const Found*>& all(Field field) const noexcept {
    return of_[static_cast<std::size_t>(field)];
  }
  /// The value that counts; nullptr where none was printed.
  [[nodiscard]] const Found* get(Field field) const noexcept { return chosen_[static_cast<std::size_t>(field)]; }
  [[nodiscard]] bool has(Field field) const noexcept { return get(field) != nullptr; }
  /// Its number, or `otherwise`; 0 for one below zero.
  [[nodiscard]] u64 number(Field field, u64 otherwise = 0) const noexcept;
  [[nodiscard]] std::string_view text(Field field) const noexcept;
  /// Ranks as one number, counted as launchers do: replica, stage, tensor rank. -1 where not said.
  [[nodiscard]] int rank_of(const Found& one) const noexcept;

  /// GPUs that hold a part of a llama.cpp model.
  [[nodiscard]] u64 gpu_devices() const noexcept;
  [[nodiscard]] u64 cache_bytes() const noexcept;
  /// Whole numbers of a text such as "[8, 8, 0]".
  [[nodiscard]] std::vector<u64> list(Field field) const;

  std::vector<Cache> caches;
  std::vector<Pool> pools;
  std::vector<Device> devices;
  std::vector<int> ranks;  ///< those that said who they are
  u32 tensor_ranks = 1, pipeline_ranks = 1;
  bool draft = false;           ///< a draft model's figures were left aside
  bool decimal_labels = false;  ///< GB was printed for GiB

 private:
  void gather(const Scan& scan);
  void choose();
  void complete_caches();
  void add_cache_part(const Found& part, std::string_view announced);
  void add_device_part(std::string_view name, const Found& part);
  void add_pool_part(const Found& part);

  std::array<std::vector<const Found*>, kFields> of_;
  std::array<const Found*, kFields> chosen_{};
};

/// Runs of layers from the loader's keys and the printed caches; empty where they do not say enough.
[[nodiscard]] std::vector<LayerRun> layers_of(const Figures& figures);

/// A cache's format by an engine's name for it; nullptr for "auto" and unknown ones.
[[nodiscard]] const Format* cache_format(std::string_view name) noexcept;

/// The catalogue's entry for a model's printed name, path or file name; nullptr when there is none.
[[nodiscard]] const CatalogueEntry* find_named_model(std::string_view name);

/// The catalogue's GPU whose words the printed name holds; memory tells sizes apart. nullptr where none or several fit.
[[nodiscard]] const Gpu* find_printed_gpu(std::string_view printed, u64 memory_bytes);

/// Whether `word` stands in a list separated by spaces.
[[nodiscard]] bool lists(std::string_view list, std::string_view word) noexcept;

/// "True", "1", "enabled", "on" and their opposites.
[[nodiscard]] std::optional<bool> truth_of(std::string_view text) noexcept;

}  // namespace kvcap::log
