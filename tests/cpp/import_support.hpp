// What the tests of imported models share: files, tables, and layers in the catalogue's notation.
#pragma once

#include <array>
#include <cstdint>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "kvcap/deployment.hpp"
#include "kvcap/footprint.hpp"

namespace kvcap::test {

inline std::optional<std::string> read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return std::nullopt;
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

using TableRow = std::map<std::string, std::string>;

/// Rows of a tab-separated file under the names of its first line.
inline std::vector<TableRow> read_table(const std::string& path) {
  std::vector<TableRow> rows;
  std::ifstream in(path);
  std::vector<std::string> names;
  for (std::string line; std::getline(in, line);) {
    std::vector<std::string> cells(1);
    for (const char c : line) {
      if (c == '\t') {
        cells.emplace_back();
      } else {
        cells.back() += c;
      }
    }
    if (names.empty()) {
      names = cells;
      continue;
    }
    TableRow row;
    for (std::size_t i = 0; i < names.size(); ++i) row[names[i]] = i < cells.size() ? cells[i] : "";
    rows.push_back(std::move(row));
  }
  return rows;
}

/// "52 window 1024 16x128; 10 full 16x128": equal runs put together, in order of first appearance.
inline std::string notation(const std::vector<LayerRun>& layers) {
  std::string out;
  for (const LayerRun& run : merge_runs(layers)) {
    if (!out.empty()) out += "; ";
    out += digits(run.count) + " " + std::string(std::string_view(kind_name(run.kind)));
    if (run.window_tokens != 0) out += " " + digits(run.window_tokens);
    if (run.tokens_per_entry != 0) out += " " + digits(run.tokens_per_entry);
    if (run.kind == LayerKind::cross) out += " " + digits(run.source_tokens);
    if (run.latent_width != 0) {
      out += (run.kind == LayerKind::compressed ? " latent " : " ") + digits(run.latent_width);
    } else if (run.kv_heads != 0) {
      out += " " + digits(run.kv_heads) + "x" + digits(run.key_width);
      if (run.value_width != run.key_width) out += "/" + digits(run.value_width);
    }
    if (run.indexer_width != 0) out += "+" + digits(run.indexer_width);
    if (run.kind == LayerKind::recurrent) {
      out += " " + digits(run.state_values) + ":" + std::string(run.state_format->id);
      if (run.conv_values != 0) out += " " + digits(run.conv_values) + ":" + std::string(run.conv_format->id);
    }
  }
  return out;
}

/// A model's cache at 16 bits in the columns of models.tsv. An indexer's keys stand apart there.
struct CacheSizes {
  Wide growing = 0, windowed = 0, cap = 0, state = 0, indexer = 0;
};

inline CacheSizes cache_sizes(const std::vector<LayerRun>& layers) {
  const Format* const half = find_format("bf16");
  const CacheFormats kv{.k = half, .v = half};
  CacheSizes out;
  for (const LayerRun& run : merge_runs(layers)) {
    const Row row = row_of(run, kv, 1);
    const Wide both = (row.k + row.v) * run.count;
    const Wide index_keys = half->bytes_of(run.indexer_width) * run.count;
    switch (run.kind) {
      case LayerKind::full:
      case LayerKind::latent:
        out.growing += both;
        out.indexer += index_keys;
        break;
      case LayerKind::compressed:
        out.growing += both / run.tokens_per_entry;
        out.indexer += index_keys / run.tokens_per_entry;
        break;
      case LayerKind::window:
      case LayerKind::chunked:
        out.windowed += both;
        out.cap += both * run.window_tokens;
        break;
      default: break;
    }
    out.state += state_of(run, 1) * run.count;
  }
  return out;
}

/// SHA-256 in hexadecimal digits (FIPS 180-4).
inline std::string sha256(std::string_view text) {
  constexpr std::array<std::uint32_t, 64> kRound = {
      0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
      0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
      0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
      0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
      0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
      0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
      0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
      0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};
  std::array<std::uint32_t, 8> h = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::string padded(text);
  padded += '\x80';
  while (padded.size() % 64 != 56) padded += '\0';
  for (int shift = 56; shift >= 0; shift -= 8) padded += static_cast<char>((std::uint64_t{text.size()} * 8) >> shift);
  const auto turn = [](std::uint32_t x, unsigned n) { return (x >> n) | (x << (32 - n)); };
  for (std::size_t block = 0; block < padded.size(); block += 64) {
    std::array<std::uint32_t, 64> w{};
    for (std::size_t i = 0; i < 64; ++i) {
      if (i < 16) {
        for (std::size_t b = 0; b < 4; ++b) w[i] = w[i] << 8 | static_cast<unsigned char>(padded[block + 4 * i + b]);
      } else {
        const std::uint32_t s0 = turn(w[i - 15], 7) ^ turn(w[i - 15], 18) ^ (w[i - 15] >> 3);
        const std::uint32_t s1 = turn(w[i - 2], 17) ^ turn(w[i - 2], 19) ^ (w[i - 2] >> 10);
        w[i] = w[i - 16] + s0 + w[i - 7] + s1;
      }
    }
    auto v = h;
    for (std::size_t i = 0; i < 64; ++i) {
      const std::uint32_t s1 = turn(v[4], 6) ^ turn(v[4], 11) ^ turn(v[4], 25);
      const std::uint32_t one = v[7] + s1 + ((v[4] & v[5]) ^ (~v[4] & v[6])) + kRound[i] + w[i];
      const std::uint32_t s0 = turn(v[0], 2) ^ turn(v[0], 13) ^ turn(v[0], 22);
      const std::uint32_t two = s0 + ((v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]));
      v = {one + two, v[0], v[1], v[2], v[3] + one, v[4], v[5], v[6]};
    }
    for (std::size_t i = 0; i < 8; ++i) h[i] += v[i];
  }
  std::string out;
  for (const std::uint32_t word : h) {
    for (int shift = 28; shift >= 0; shift -= 4) out += "0123456789abcdef"[word >> shift & 15];
  }
  return out;
}

}  // namespace kvcap::test
