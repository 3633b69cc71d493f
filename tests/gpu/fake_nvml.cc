// fake_nvml.cc: libnvidia-ml.so.1 with two cards where the emulated runtime has its first devices; the second does not tell its power. On each is a MIG slice
// with memory of its own, which is found by its UUID alone; as with some drivers, it answers with the power and temperature of its card.

#include <cstring>

namespace {

enum Status { kSuccess = 0, kUninitialized = 1, kNotSupported = 3, kNotFound = 6 };

struct Unit {
  const char *place, *uuid;
  int card;
  bool slice;
  unsigned long long bytes, used;
};
Unit units[] = {
    {"0000:10:00.0", "GPU-00000000-0000-0000-0000-000000000000", 0, false, 150754820096, 1000},
    {"0000:11:00.0", "GPU-00000000-0000-0000-0000-000000000001", 1, false, 150754820096, 1001},
    {"", "MIG-00000000-0000-0000-0000-000000000000", 0, true, 18253611008, 500},
    {"", "MIG-00000000-0000-0000-0000-000000000001", 1, true, 18253611008, 501},
};
bool started = false;
unsigned long long millijoules = 987654321000;  // since the driver was loaded

const Unit& unit_of(const void* device) { return *static_cast<const Unit*>(device); }

int find(const char* Unit::* key, const char* wanted, void** device) {
  if (!started) return kUninitialized;
  for (Unit& unit : units) {
    if (std::strcmp(wanted, unit.*key) != 0) continue;
    *device = &unit;
    return kSuccess;
  }
  return kNotFound;
}

}  // namespace

extern "C" {

int nvmlInit_v2() {
  started = true;
  return kSuccess;
}
int nvmlShutdown() { return kSuccess; }
int nvmlDeviceGetHandleByPciBusId_v2(const char* id, void** device) { return find(&Unit::place, id, device); }
int nvmlDeviceGetHandleByUUID(const char* uuid, void** device) { return find(&Unit::uuid, uuid, device); }
int nvmlDeviceGetUtilizationRates(void* device, unsigned* rates) {
  if (unit_of(device).slice) return kNotSupported;
  rates[0] = unit_of(device).card == 0 ? 37 : 0;
  rates[1] = 5;
  return kSuccess;
}
int nvmlDeviceGetMemoryInfo(void* device, unsigned long long* memory) {
  memory[0] = unit_of(device).bytes;
  memory[2] = unit_of(device).used;
  memory[1] = memory[0] - memory[2];
  return kSuccess;
}
int nvmlDeviceGetTemperature(void* device, int, unsigned* celsius) {
  *celsius = 41 + static_cast<unsigned>(unit_of(device).card);
  return kSuccess;
}
int nvmlDeviceGetPowerUsage(void* device, unsigned* milliwatts) {
  if (unit_of(device).card != 0) return kNotSupported;
  *milliwatts = 123456;
  return kSuccess;
}
int nvmlDeviceGetPowerManagementLimit(void* device, unsigned* milliwatts) {
  if (unit_of(device).card != 0) return kNotSupported;
  *milliwatts = 700000;
  return kSuccess;
}
int nvmlDeviceGetTotalEnergyConsumption(void* device, unsigned long long* consumed) {
  if (unit_of(device).card != 0) return kNotSupported;
  *consumed = millijoules += 2500;
  return kSuccess;
}
}
