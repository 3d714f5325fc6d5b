/* Runs a fuzz target on every file of the directories given, without libFuzzer: `replay DIR...`. */
#include "base/mem.h"
#include "tests/fuzz/fuzz.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

/* In memory of just its size, so that reading past it is seen. */
static uint8_t *read_file(const char *path, size_t *size)
{
    FILE *f = fopen(path, "rb");
    struct stat st;
    if (f == NULL || fstat(fileno(f), &st) != 0 || !S_ISREG(st.st_mode)) {
        if (f != NULL)
            fclose(f);
        return NULL;
    }
    *size = (size_t)st.st_size;
    uint8_t *data = xmalloc(*size);
    *size = fread(data, 1, *size, f);
    fclose(f);
    return data;
}

/* How many files were replayed; -1 where the directory cannot be read. */
static int replay(const char *dir)
{
    struct dirent **names;
    int count = scandir(dir, &names, NULL, alphasort), replayed = 0;
    for (int i = 0; i < count; i++) {
        char path[PATH_MAX];
        size_t size;
        snprintf(path, sizeof path, "%s/%s", dir, names[i]->d_name);
        uint8_t *data = read_file(path, &size);
        if (data != NULL) {
            LLVMFuzzerTestOneInput(data, size);
            replayed++;
        }
        free(data);
        free(names[i]);
    }
    if (count >= 0)
        free(names);
    return count < 0 ? -1 : replayed;
}

int main(int argc, char **argv)
{
    int failed = argc < 2;
    for (int i = 1; i < argc; i++) {
        int replayed = replay(argv[i]);
        printf("%s: %d inputs\n", argv[i], replayed);
        failed |= replayed <= 0;
    }
    return failed;
}
