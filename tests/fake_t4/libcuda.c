/* A fake CUDA driver: it says that there is one Tesla T4, and can do nothing else. */

#include <stddef.h>
#include <string.h>

int cuInit(unsigned flags) { return flags == 0 ? 0 : 1; }

int cuDeviceGetCount(int *count) { *count = 1; return 0; }

int cuDeviceGet(int *device, int number) { *device = number; return number == 0 ? 0 : 101; }

int cuDeviceGetName(char *name, int length, int device) {
    (void)device;
    strncpy(name, "Tesla T4", (size_t)length);
    return 0;
}

int cuDeviceTotalMem_v2(size_t *bytes, int device) { (void)device; *bytes = 15828320256u; return 0; }

int cuDeviceGetAttribute(int *value, int which, int device) {
    (void)device;
    switch (which) {
        case 8: *value = 49152; break;    /* shared memory per block */
        case 16: *value = 40; break;      /* SMs */
        case 32: *value = 1; break;       /* ECC */
        case 37: *value = 256; break;     /* memory bus width */
        case 38: *value = 4194304; break; /* L2 */
        case 75: *value = 7; break;       /* compute capability */
        case 76: *value = 5; break;
        case 81: *value = 65536; break;   /* shared memory per SM */
        default: *value = 0;
    }
    return 0;
}
