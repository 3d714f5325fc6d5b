#include "ingest/json_paths.h"

#include "base/check.h"
#include "base/mem.h"
#include "ingest/json_pointer.h"

#include <stdlib.h>

#define SLOTS_MIN_LOG2 4

struct json_paths *json_paths_new(unsigned depth_max)
{
    struct json_paths *paths = xcalloc(1, sizeof *paths);
    paths->depth_max = depth_max;
    paths->root.path = JSON_NO_PATH;
    return paths;
}

static size_t slot_count(const struct json_node *node)
{
    return node->names != NULL ? (size_t)1 << (64 - node->shift) : 0;
}

static void free_names(struct json_node *node)
{
    for (size_t i = 0; i < slot_count(node); i++) {
        struct json_name *n = &node->names[i];
        if (n->node == NULL)
            continue;
        free_names(n->node);
        free(n->node);
        free((char *)(uintptr_t)n->ptr);
    }
    free(node->names);
}

void json_paths_free(struct json_paths *paths)
{
    if (paths == NULL)
        return;
    free_names(&paths->root);
    for (size_t i = 0; i < paths->count; i++)
        free(paths->pointers[i]);
    free(paths);
}

static void insert(struct json_node *node, struct json_name name)
{
    size_t last = slot_count(node) - 1, i = json_name_slot(node, name.word, name.len);
    while (node->names[i].node != NULL)
        i = (i + 1) & last;
    node->names[i] = name;
}

/* Keeps three slots in four empty: most names that are not there are missed at once. */
static void make_room(struct json_node *node)
{
    size_t count = slot_count(node);
    struct json_name *old = node->names;
    if (4 * (node->name_count + 1) <= count)
        return;
    node->shift = count == 0 ? 64 - SLOTS_MIN_LOG2 : node->shift - 1;
    node->names = xcalloc((size_t)1 << (64 - node->shift), sizeof *node->names);
    for (size_t i = 0; i < count; i++) {
        if (old[i].node != NULL)
            insert(node, old[i]);
    }
    free(old);
}

/* A name of a pointer with ~0 and ~1 undone, and zeros behind it, so that its word can be read. */
static struct slice undo_tildes(struct slice name)
{
    char *out = xcalloc(1, name.len + sizeof(uint64_t));
    size_t len = 0;
    for (size_t i = 0; i < name.len; i++) {
        bool is_tilde = name.ptr[i] == '~';
        i += is_tilde;
        out[len++] = !is_tilde ? name.ptr[i] : name.ptr[i] == '0' ? '~' : '/';
    }
    return slice_of(out, len);
}

static struct json_node *find_or_add(struct json_node *node, struct slice written)
{
    struct slice name = undo_tildes(written);
    uint64_t word = name.len > 0 ? json_name_word(name.ptr, name.len) : 0;
    const struct json_node *found = node->names != NULL ? json_node_find(node, word, name) : NULL;
    if (found != NULL) {
        free((char *)(uintptr_t)name.ptr);
        return (struct json_node *)(uintptr_t)found;
    }
    struct json_node *child = xcalloc(1, sizeof *child);
    child->path = JSON_NO_PATH;
    make_room(node);
    insert(node, (struct json_name){word, name.ptr, name.len, child});
    node->name_count++;
    return child;
}

size_t json_paths_add(struct json_paths *paths, struct slice pointer)
{
    ASSERT(json_pointer_is_good(pointer));
    for (size_t i = 0; i < paths->count; i++) {
        if (slice_equal(pointer, slice_of(paths->pointers[i], paths->lengths[i])))
            return i;
    }
    ASSERT(paths->count < JSON_PATHS_MAX);
    size_t path = paths->count++;
    paths->pointers[path] = xstrndup(pointer.len > 0 ? pointer.ptr : "", pointer.len);
    paths->lengths[path] = pointer.len;
    struct json_node *node = &paths->root;
    while (pointer.len > 0) {
        node->below[path / 64] |= (uint64_t)1 << path % 64;
        node = find_or_add(node, json_pointer_take(&pointer));
    }
    node->path = (int)path;
    return path;
}
