/* Options that are right one by one and contradict each other. Each message names the options and a way out. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include <halfstep/context.h>
#include <halfstep/data.h>

#include "trainer/exit.h"
#include "trainer/options/options.h"
#include "trainer/report.h"

static int check_model(const hs_options *o) {
    if (o->width % o->heads != 0)
        return hs_report_usage("train", "--heads %" PRIu64 " does not divide --width %" PRIu64 ": change one of them",
                               o->heads, o->width);
    if (o->width / o->heads % 2 != 0)
        return hs_report_usage("train",
                               "--width %" PRIu64 " and --heads %" PRIu64 " make heads of odd width %" PRIu64
                               "; rotary embedding needs an even one: change --width or --heads",
                               o->width, o->heads, o->width / o->heads);
    if (o->kv_heads != 0 && o->heads % o->kv_heads != 0)
        return hs_report_usage("train",
                               "--kv-heads %" PRIu64 " does not divide --heads %" PRIu64 ": change one of them",
                               o->kv_heads, o->heads);
    return HS_EXIT_DONE;
}

static bool is_given(const hs_options *o, const char *name) {
    size_t rows;
    return o->sources[hs_option_find(name) - hs_option_table(&rows)] != HS_SOURCE_DEFAULT;
}

static int check_data(const hs_options *o) {
    if (o->data.count == 0 && (o->eval_data.count > 0 || o->token_type != HSTEP_TOKENS_AUTO || o->vocabulary != 0))
        return hs_report_usage("train", "--%s is for data of yours, and the built-in corpus is not: give --data too",
                               o->eval_data.count > 0               ? "eval-data"
                               : o->token_type != HSTEP_TOKENS_AUTO ? "token-type"
                                                                    : "vocabulary");
    if (o->eval_data.count > 0 && is_given(o, "held-out"))
        return hs_report_usage("train", "--held-out and --eval-data both say what to evaluate on: give one of them");
    return HS_EXIT_DONE;
}

static int check_schedule(const hs_options *o) {
    if (o->min_learning_rate > o->learning_rate)
        return hs_report_usage("train", "--min-learning-rate %s is above --learning-rate %s: lower it",
                               hs_digits_of(o->min_learning_rate).text, hs_digits_of(o->learning_rate).text);
    if (o->warmup_steps > o->steps)
        return hs_report_usage(
            "train", "--warmup-steps %" PRIu64 " is more than --steps %" PRIu64 ": the warm-up would not end; lower it",
            o->warmup_steps, o->steps);
    return HS_EXIT_DONE;
}

static bool power_of_two(double value) {
    int exponent;
    return frexp(value, &exponent) == 0.5;
}

static int check_scaler(const hs_options *o) {
    const struct {
        const char *name;
        double value;
    } scales[] = {{"loss-scale", o->scaler.initial},
                  {"min-loss-scale", o->scaler.minimum},
                  {"max-loss-scale", o->scaler.maximum}};
    for (size_t i = 0; i < sizeof scales / sizeof scales[0]; ++i)
        if (!power_of_two(scales[i].value))
            return hs_report_usage("train", "--%s %s is no power of two: give 1, 2, 4, ..., such as 65536",
                                   scales[i].name, hs_digits_of(scales[i].value).text);
    if (o->scaler.initial < o->scaler.minimum)
        return hs_report_usage("train", "--loss-scale %s is below --min-loss-scale %s: change one of them",
                               hs_digits_of(o->scaler.initial).text, hs_digits_of(o->scaler.minimum).text);
    if (o->scaler.initial > o->scaler.maximum)
        return hs_report_usage("train",
                               "--loss-scale %s is above --max-loss-scale %s, which in bf16 and f64 is "
                               "1 unless given: change one of them",
                               hs_digits_of(o->scaler.initial).text, hs_digits_of(o->scaler.maximum).text);
    return HS_EXIT_DONE;
}

static int check_output(const hs_options *o) {
    if (o->dump_overflow > 0 && o->records != NULL && o->out == NULL)
        return hs_report_usage("train", "--dump-overflow needs a folder to keep attempts in: give --out too");
    if (o->allow_changes && !o->resume)
        return hs_report_usage("train", "--allow-changes goes with --resume: give it too, or leave both out");
    return HS_EXIT_DONE;
}

int hs_options_check_device(const char *command, const char *device, int backend) {
    if (strcmp(device, "any") != 0 && backend != HSTEP_BACKEND_VULKAN)
        return hs_report_usage(command, "--device %s%s%s goes with --backend vulkan: give it too",
                               hs_report_mark(device), device, hs_report_mark(device));
    return HS_EXIT_DONE;
}

int hs_options_check(const hs_options *options) {
    int status = check_data(options);
    if (status == HS_EXIT_DONE)
        status = check_model(options);
    if (status == HS_EXIT_DONE)
        status = check_schedule(options);
    if (status == HS_EXIT_DONE)
        status = check_scaler(options);
    if (status == HS_EXIT_DONE)
        status = check_output(options);
    if (status == HS_EXIT_DONE)
        status = hs_options_check_device("train", options->device, options->backend);
    return status;
}
