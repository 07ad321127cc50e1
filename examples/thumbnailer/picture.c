/* Portable anymaps, the simplest pictures there are: "P5 640 480 255" and the pixels. */
#include "thumbnailer.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { SIDE_MAX = 32768 };

void picture_free(picture *it)
{
    free(it->pixels);
    it->pixels = NULL;
}

/* The next number; blanks and comments before it are skipped. -1: there is none. */
static long read_number(FILE *in)
{
    int c = getc(in);
    while (isspace(c) || c == '#') {
        while (c == '#' && (c = getc(in)) != '\n' && c != EOF) {
            c = '#';
        }
        c = getc(in);
    }
    long value = isdigit(c) ? 0 : -1;
    for (; isdigit(c) && value <= SIDE_MAX; c = getc(in)) {
        value = value * 10 + (c - '0');
    }
    return value; /* the one blank after it is read, too, as the format wants it */
}

static int read_pixels(FILE *in, int as_text, picture *out)
{
    size_t count = (size_t)out->width * out->height * out->depth;
    if (!as_text) {
        return fread(out->pixels, 1, count, in) == count;
    }
    for (size_t i = 0; i < count; i++) {
        long value = read_number(in);
        if (value < 0 || value > 255) {
            return 0;
        }
        out->pixels[i] = (unsigned char)value;
    }
    return 1;
}

static const char *read_from(FILE *in, picture *out)
{
    int p = getc(in);
    int type = getc(in);
    if (p != 'P' || (type != '2' && type != '3' && type != '5' && type != '6')) {
        return "it is no P2, P3, P5 or P6 picture";
    }
    long width = read_number(in);
    long height = read_number(in);
    if (width < 1 || height < 1 || width > SIDE_MAX || height > SIDE_MAX ||
        read_number(in) != 255) {
        return "its width, height or depth make no sense";
    }
    *out = (picture){.width = (uint32_t)width,
                     .height = (uint32_t)height,
                     .depth = type == '3' || type == '6' ? 3 : 1};
    out->pixels = malloc((size_t)out->width * out->height * out->depth);
    if (out->pixels == NULL) {
        return "there is no memory for it";
    }
    if (!read_pixels(in, type < '5', out)) {
        picture_free(out);
        return "it is cut off";
    }
    return NULL;
}

const char *picture_read(const char *path, picture *out)
{
    FILE *in = fopen(path, "rb");
    if (in == NULL) {
        return "it cannot be opened";
    }
    const char *wrong = read_from(in, out);
    (void)fclose(in);
    return wrong;
}

/* The mean of the pixels that fall onto one. */
static unsigned char mean(const picture *from, const picture *to, uint32_t x, uint32_t y,
                          uint32_t channel)
{
    uint64_t sum = 0;
    uint64_t count = 0;
    uint32_t bottom = (uint32_t)((uint64_t)(y + 1) * from->height / to->height);
    uint32_t right = (uint32_t)((uint64_t)(x + 1) * from->width / to->width);
    for (uint32_t v = (uint32_t)((uint64_t)y * from->height / to->height); v < bottom; v++) {
        for (uint32_t u = (uint32_t)((uint64_t)x * from->width / to->width); u < right; u++) {
            sum += from->pixels[((size_t)v * from->width + u) * from->depth + channel];
            count++;
        }
    }
    return (unsigned char)(sum / count);
}

const char *picture_shrink(const picture *from, uint32_t size, picture *out)
{
    uint32_t longer = from->width > from->height ? from->width : from->height;
    size = size < longer ? size : longer;
    uint32_t width = (uint32_t)((uint64_t)from->width * size / longer);
    uint32_t height = (uint32_t)((uint64_t)from->height * size / longer);
    *out = (picture){
        .width = width > 0 ? width : 1, .height = height > 0 ? height : 1, .depth = from->depth};
    out->pixels = malloc((size_t)out->width * out->height * out->depth);
    if (out->pixels == NULL) {
        return "there is no memory for its thumbnail";
    }
    unsigned char *at = out->pixels;
    for (uint32_t y = 0; y < out->height; y++) {
        for (uint32_t x = 0; x < out->width; x++) {
            for (uint32_t channel = 0; channel < out->depth; channel++) {
                *at++ = mean(from, out, x, y, channel);
            }
        }
    }
    return NULL;
}

static int write_file(const picture *from, const char *path)
{
    FILE *file = fopen(path, "wb");
    if (file == NULL) {
        return errno;
    }
    size_t count = (size_t)from->width * from->height * from->depth;
    int failed = fprintf(file, "P%c\n%u %u\n255\n", from->depth == 3 ? '6' : '5', from->width,
                         from->height) < 0 ||
                 fwrite(from->pixels, 1, count, file) != count || fflush(file) != 0 ||
                 fsync(fileno(file)) != 0;
    int why = errno;
    return fclose(file) != 0 || failed ? why : 0;
}

int picture_write(const picture *from, const char *dir, const char *name)
{
    char temporary[PATH_SIZE + 8];
    char path[PATH_SIZE];
    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    (void)snprintf(temporary, sizeof temporary, "%s/.%s.tmp", dir, name);
    int failed = write_file(from, temporary);
    if (failed == 0 && rename(temporary, path) != 0) {
        failed = errno;
    }
    int fd = failed == 0 ? open(dir, O_RDONLY | O_DIRECTORY) : -1;
    if (failed == 0 && (fd < 0 || fsync(fd) != 0)) {
        failed = errno; /* a rename is on disk when its directory is */
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    return failed;
}
