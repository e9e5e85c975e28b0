/*
 * A model of one's own, written as a graph: a perceptron with one hidden layer learns which points of a square lie in a
 * disc, and the program draws what it has learned.
 * cc mlp.c $(pkg-config --cflags --libs halfstep) -o mlp
 * (docs/embedding.md has the line for an installation in a folder of one's own.)
 */
#include <halfstep/halfstep.h>
#include <stdio.h>
#include <stdlib.h>

enum { POINTS = 512, HIDDEN = 16, CLASSES = 2, UPDATES = 300, ROWS = 20, COLUMNS = 44 };

static hstep_error error;

static void require(hstep_status status) {
    if (status == HSTEP_OK)
        return;
    /* While a graph is built, `operation` is the name that was being declared. */
    fprintf(stderr, "mlp: %s: %s: %s\n", hstep_status_name(status), error.operation, error.message);
    exit(EXIT_FAILURE);
}

/* y = x weight^T + bias. Only the product rounds to a half format; the sum is f64. Names are what errors, records and
 * hstep_model_find_parameter know things by, and each may stand once in a graph. */
static hstep_value linear(hstep_graph *g, const char *names[4], hstep_value x, int64_t in, int64_t out) {
    hstep_value weight, bias, product, y;
    require(hstep_graph_parameter(g, names[0], 2, (int64_t[]){out, in}, &weight, &error));
    require(hstep_graph_parameter(g, names[1], 1, (int64_t[]){out}, &bias, &error));
    require(hstep_graph_matmul(g, names[2], HSTEP_PRECISION_BF16, x, HSTEP_NO_TRANSPOSE, weight, HSTEP_TRANSPOSE,
                               &product, &error));
    require(hstep_graph_add_bias(g, names[3], product, bias, &y, &error));
    return y;
}

/* Inputs have as many rows as a batch brings: HSTEP_ROWS. Setting the loss ends the graph and writes its gradients. */
static hstep_graph *perceptron(void) {
    hstep_graph *g;
    hstep_value points, targets, hidden, logits, loss;
    require(hstep_graph_create(&g, &error));
    require(hstep_graph_input(g, "points", HSTEP_DTYPE_F64, 2, (int64_t[]){HSTEP_ROWS, 2}, &points, &error));
    require(hstep_graph_input(g, "targets", HSTEP_DTYPE_I32, 1, (int64_t[]){HSTEP_ROWS}, &targets, &error));
    hidden =
        linear(g, (const char *[]){"hidden.weight", "hidden.bias", "hidden.product", "hidden.sum"}, points, 2, HIDDEN);
    require(hstep_graph_silu(g, "hidden.silu", hidden, &hidden, &error));
    logits = linear(g, (const char *[]){"out.weight", "out.bias", "out.product", "out.sum"}, hidden, HIDDEN, CLASSES);
    require(hstep_graph_cross_entropy(g, "loss", logits, targets, &loss, &error));
    require(hstep_graph_set_output(g, logits, &error)); /* what hstep_model_output will return */
    require(hstep_graph_set_loss(g, loss, &error));
    return g;
}

/* A number in [-1, 1) that is a function of its place, from the library's source without state. */
static double random_place(uint64_t index) { return (double)(hstep_random_at(1, 0, index) >> 11) / (1ULL << 52) - 1; }

static int in_disc(const double point[2]) { return point[0] * point[0] + point[1] * point[1] < 0.5; }

/* The class of each point: the larger of its two logits. */
static void classify(hstep_model *model, size_t count, double points[][2], int *classes) {
    const hstep_feed feed = {"points", points};
    const hstep_batch batch = {.sequences = count, .length = 1, .feeds = &feed, .feed_count = 1};
    double *logits = malloc(hstep_model_output_size(model, count, 1) * sizeof *logits);
    if (logits == NULL)
        exit(EXIT_FAILURE);
    require(hstep_model_output(model, &batch, logits, &error)); /* needs no targets */
    for (size_t i = 0; i < count; i++)
        classes[i] = logits[CLASSES * i + 1] > logits[CLASSES * i];
    free(logits);
}

static void draw(hstep_model *model) {
    static double points[ROWS * COLUMNS][2];
    static int classes[ROWS * COLUMNS];
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        points[i][0] = (i % COLUMNS + 0.5) * 2 / COLUMNS - 1;
        points[i][1] = (i / COLUMNS + 0.5) * 2 / ROWS - 1;
    }
    classify(model, ROWS * COLUMNS, points, classes);
    for (int i = 0; i < ROWS * COLUMNS; i++)
        printf("%c%s", classes[i] ? '#' : '.', i % COLUMNS == COLUMNS - 1 ? "\n" : "");
}

int main(void) {
    static double points[POINTS][2];
    static int32_t targets[POINTS];
    static int classes[POINTS];
    for (int i = 0; i < POINTS; i++) {
        points[i][0] = random_place(2 * (uint64_t)i);
        points[i][1] = random_place(2 * (uint64_t)i + 1);
        targets[i] = in_disc(points[i]);
    }
    /* Data without sequences: as many sequences as rows, of length 1. Targets have a field of their own. */
    const hstep_feed feed = {"points", points};
    const hstep_batch batch = {.sequences = POINTS, .length = 1, .targets = targets, .feeds = &feed, .feed_count = 1};

    hstep_context *context;
    hstep_model *model;
    hstep_trainer *trainer;
    hstep_trainer_config config = hstep_trainer_defaults(HSTEP_PRECISION_BF16);
    config.schedule.learning_rate = 0.1;
    hstep_context_options options = hstep_context_defaults();
    options.threads = 1; /* in so small a model threads would wait for each other */
    require(hstep_context_create(&options, &context, &error));
    require(hstep_model_create(context, perceptron(), &model, &error)); /* the graph is the model's now */
    require(hstep_model_initialize(model, HSTEP_INIT_XAVIER, 1, &error));
    require(hstep_trainer_create(model, &config, &trainer, &error));

    for (int i = 1; i <= UPDATES; i++) {
        hstep_update update;
        require(hstep_trainer_update(trainer, &batch, 1, &update, &error));
        if (i == 1 || i % 60 == 0)
            printf("step %3d  loss %.4f\n", i, update.loss);
    }
    classify(model, POINTS, points, classes);
    int right = 0;
    for (int i = 0; i < POINTS; i++)
        right += classes[i] == targets[i];
    printf("right: %d of %d\n", right, POINTS);
    draw(model);

    hstep_trainer_destroy(trainer);
    hstep_model_destroy(model);
    hstep_context_destroy(context);
    return EXIT_SUCCESS;
}
