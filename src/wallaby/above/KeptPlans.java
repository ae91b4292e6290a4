package wallaby;

import java.lang.ref.WeakReference;
import java.math.BigInteger;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkThrowable;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.rdd.RDD;
import org.apache.spark.rdd.UnionRDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.analysis.MultiInstanceRelation;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.QueryPlan;
import org.apache.spark.sql.catalyst.plans.logical.LeafNode;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Statistics;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.ProjectExec;
import org.apache.spark.sql.execution.QueryExecution$;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.SparkStrategy;
import org.apache.spark.sql.execution.UnionExec;
import org.apache.spark.sql.execution.metric.SQLMetric;
import org.apache.spark.sql.execution.metric.SQLMetrics$;
import scala.Option;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Map$;
import scala.collection.immutable.Nil$;
import scala.collection.immutable.Seq;
import scala.math.BigInt;
import scala.reflect.ClassTag$;

/**
 * The nodes in Spark's plans that stand for sub-plans in the TaskManagers.
 *
 * They exist only in the driver. When Spark executes such a node, Python runs the sub-plan and returns a plan of Spark's own
 * classes that reads its rows. So nothing runs while a query is planned or explained, and executors need none of our
 * classes.
 */
public class KeptPlans {
    private static final String KEPT_RESULT = "WALLABY_KEPT_RESULT";
    /** A local property: Spark alone runs what this thread plans. */
    public static final String BYPASS = "spark.wallaby.bypass";

    public final KeptRdds rdds;
    /** Starts a run. */
    private Function start;

    public KeptPlans(KeptRdds rdds) {
        this.rdds = rdds;
    }

    public void connect(Function start) {
        this.start = start;
    }

    public static Seq one(Object plan) {
        return (Seq) Nil$.MODULE$.prepended(plan);
    }

    /** The same columns with new ids. */
    public static Seq fresh(Seq output) {
        List made = new ArrayList();
        scala.collection.Iterator columns = output.iterator();
        while (columns.hasNext()) {
            made.add(((Attribute) columns.next()).newInstance());
        }
        return scala.jdk.javaapi.CollectionConverters.asScala(made).toSeq();
    }

    /** Plans DataFrames over kept rows. */
    public static class Strategy extends SparkStrategy {
        public Seq apply(LogicalPlan plan) {
            if (plan instanceof Relation) {
                return one(new Exec(((Relation) plan).run, plan.output()));
            }
            return (Seq) Nil$.MODULE$;
        }

        /** A session needs only one, however many engines it has had. */
        public boolean equals(Object other) {
            return other instanceof Strategy;
        }

        public int hashCode() {
            return Strategy.class.hashCode();
        }
    }

    /** A sub-plan that runs in the TaskManagers once, however many nodes stand for it and however often they execute. */
    public static class Run {
        final KeptPlans plans;
        /** A copy: nothing that is said of the nodes of the query around it is said of these. */
        public final LogicalPlan plan;
        private final SparkSession session = (SparkSession) SparkSession.active();
        final String id;
        final String text;
        /** Are its rows kept until they are released by name? */
        public boolean stays = false;
        volatile long rows = -1;
        volatile long bytes = -1;
        private WeakReference rdd = new WeakReference(null);
        /** If rows are kept until they are released, what is executed later reads them too. */
        private PartRdd held = null;

        public Run(KeptPlans plans, LogicalPlan plan, String id, String text) {
            this.plans = plans;
            this.plan = (LogicalPlan) plan.clone();
            this.id = id;
            this.text = text;
            plans.rdds.watch(this, id);
        }

        public String id() {
            return id;
        }

        /** The sub-plan as a query of its own, which is never offered again. */
        public Object query() {
            return Dataset.ofRows(session, (LogicalPlan) plan.clone());
        }

        /**
         * Spark's own physical plan. It is made from the optimized plan as it is: to optimize it again would take time, and
         * Spark fails at some plans that it has optimized itself. It is not adapted while it runs, because the thread that
         * executes it may belong to the pool that adapted queries need.
         */
        public SparkPlan onSpark(int partitions) {
            SparkSession own = session.cloneSession();
            own.conf().set("spark.sql.adaptive.enabled", "false");
            if (partitions > 0) {
                own.conf().set("spark.sql.shuffle.partitions", String.valueOf(partitions));
            }
            SparkContext context = plans.rdds.context();
            String before = context.getLocalProperty(BYPASS);
            SparkSession active = (SparkSession) SparkSession.active();
            context.setLocalProperty(BYPASS, "true");
            SparkSession.setActiveSession(own);
            try {
                return QueryExecution$.MODULE$.prepareExecutedPlan(own, (LogicalPlan) plan.clone());
            } finally {
                SparkSession.setActiveSession(active);
                context.setLocalProperty(BYPASS, before);
            }
        }

        /** The rows as an RDD. Nothing runs yet. */
        synchronized RDD execute(Exec node) {
            require();
            PartRdd there = (PartRdd) rdd.get();
            if (there == null) {
                there = new PartRdd(plans.rdds.context(), new Rows(this));
                rdd = new WeakReference(there);
            }
            if (stays) {
                held = there;
            }
            ((Rows) there.source).add(node);
            return there;
        }

        /** Can the rows be read, or made? Those of a part can always be made, by Spark. */
        void require() {
            if (plans.rdds.isForgotten(id)) {
                throw new WallabyException(KEPT_RESULT,
                    "The rows of this DataFrame were released by unpersist. Create the DataFrame again.", null);
            }
            if (stays && plans.rdds.isClosed()) {
                throw new WallabyException(KEPT_RESULT,
                    "The engine that ran a part of this query is closed. Create the DataFrame again.", null);
            }
        }
    }

    /** The rows of a run while somebody can read them: kept in the TaskManagers, or Spark's own. */
    public static class Rows implements PartRdd.Source, KeptRdds.Reported {
        private final Run run;
        private volatile RDD made = null;
        /** The name of the kept rows; null if Spark computes them. */
        private String kept = null;
        private Object[] figures = null;
        /** How many partitions Spark was told of; 0 if it has not asked. */
        private int count = 0;
        /** A failure that the execution is told when it submits a job, and that execution. */
        private WallabyException late = null;
        private String lateIn = null;
        private List<WeakReference> nodes = new ArrayList<WeakReference>();

        public Rows(Run run) {
            this.run = run;
        }

        /** Tell a node of a physical plan what has run. */
        synchronized void add(Exec node) {
            List<WeakReference> left = new ArrayList<WeakReference>();
            for (int at = 0; at < nodes.size(); at++) {
                if (((WeakReference) nodes.get(at)).get() != null) {
                    left.add((WeakReference) nodes.get(at));
                }
            }
            left.add(new WeakReference(node));
            nodes = left;
        }

        public RDD prepared() {
            return made;
        }

        /**
         * Spark remembers an exception that comes while it makes the RDDs of a plan, and operators such as exchanges ask for
         * the number of partitions then. So a failure waits until the same execution submits a job; the next one runs the part
         * again, in so many partitions.
         */
        public synchronized int count() {
            if (count == 0) {
                try {
                    count = prepare().getNumPartitions();
                } catch (WallabyException failed) {
                    String execution = run.plans.rdds.context().getLocalProperty(KeptRdds.EXECUTION);
                    if (failed.partitions == 0 || execution == null || !makesRdds()) {
                        throw failed;
                    }
                    late = failed;
                    lateIn = execution;
                    count = failed.partitions;
                }
            }
            return count;
        }

        private static boolean makesRdds() {
            StackTraceElement[] callers = Thread.currentThread().getStackTrace();
            for (int at = 0; at < callers.length; at++) {
                if (callers[at].getMethodName().equals("doExecute")) {
                    return true;
                }
            }
            return false;
        }

        private void raiseLate() {
            WallabyException failed = late;
            late = null;
            if (failed != null && lateIn.equals(run.plans.rdds.context().getLocalProperty(KeptRdds.EXECUTION))) {
                throw failed;
            }
        }

        public synchronized RDD prepare() {
            run.require();
            raiseLate();
            KeptRdds rdds = run.plans.rdds;
            if (made == null) {
                made = rdds.isClosed() ? run.onSpark(count).execute() : begin();
                if (count > 0) {
                    made = fitted(made, count);
                }
            } else if (kept != null && !run.stays && (rdds.isClosed() || !rdds.isThere(kept))) {
                int before = made.getNumPartitions();
                made = fitted(run.onSpark(before).execute(), before);
                kept = null;
                figures = null;
            }
            for (int at = 0; at < nodes.size(); at++) {
                Exec node = (Exec) ((WeakReference) nodes.get(at)).get();
                if (node != null) {
                    node.tell(figures);
                }
            }
            return made;
        }

        /** Called when a lost TaskManager's part of the rows is made again. */
        public synchronized void lose() {
            if (figures != null && figures[1] != null) {
                figures[5] = Long.valueOf(((Number) figures[5]).longValue() + 1);
            }
            for (int at = 0; at < nodes.size(); at++) {
                Exec node = (Exec) ((WeakReference) nodes.get(at)).get();
                if (node != null) {
                    node.lose();
                }
            }
        }

        private RDD begin() {
            Object[] answer = ((List) Calls.apply(run.plans.rdds.context(), run.plans.start, run)).toArray();
            if (answer[0] instanceof String) {
                WallabyException failed = new WallabyException((String) answer[0], (String) answer[1], (String) answer[2]);
                failed.partitions = ((Number) answer[3]).intValue();
                throw failed;
            }
            RDD found = ((SparkPlan) answer[0]).execute();
            kept = (String) answer[1];
            figures = answer;
            if (kept != null) {
                run.plans.rdds.report(kept, this);
                run.rows = ((Number) answer[2]).longValue();
                run.bytes = ((Number) answer[3]).longValue();
                if (run.stays) {
                    run.plans.rdds.stay(run.id, kept, found);
                } else {
                    run.plans.rdds.hold(found, kept, run.bytes);
                }
            }
            return found;
        }

        /**
         * Rows in so many partitions as the kept ones had. Sorted rows have no more: there are as many ranges as partitions
         * of a shuffle. So their order does not change.
         */
        private RDD fitted(RDD rows, int count) {
            int there = rows.getNumPartitions();
            if (there > count) {
                return rows.coalesce(count, false, Option.empty(), null);
            }
            if (there == count) {
                return rows;
            }
            RDD none = new JavaSparkContext(run.plans.rdds.context()).parallelize(new ArrayList(), count - there).rdd();
            return new UnionRDD(
                run.plans.rdds.context(), (Seq) one(none).prepended(rows), ClassTag$.MODULE$.apply(InternalRow.class));
        }
    }

    /** A Wallaby error on its way through Spark to the caller of an action; thrown.py restores it in Python. */
    public static class WallabyException extends RuntimeException implements SparkThrowable {
        private final String condition;
        private final String what;
        private final String written;
        /** How many partitions the rows would have had at most, if that is known. */
        int partitions = 0;

        /** `written` is the complete error, encoded, if Python raised it. */
        public WallabyException(String condition, String what, String written) {
            super("[" + condition + "] " + what);
            this.condition = condition;
            this.what = what;
            this.written = written;
        }

        public String what() {
            return what;
        }

        public String written() {
            return written;
        }

        public String getCondition() {
            return condition;
        }

        public String getErrorClass() {
            return condition;
        }
    }

    /** The node of a physical plan that stands for a sub-plan. */
    public static class Exec extends SparkPlan {
        private final transient Run run;
        private final Seq output;
        private static final String LOSSES = "losses";
        private transient scala.collection.immutable.Map metrics = null;
        /** The execution that was told the metrics. Spark adds up what it is told. */
        private transient String told = null;

        public Exec(Run run, Seq output) {
            this.run = run;
            this.output = output;
        }

        public Seq output() {
            return output;
        }

        public Seq children() {
            return (Seq) Nil$.MODULE$;
        }

        public String nodeName() {
            return "Wallaby";
        }

        public String simpleString(int maxFields) {
            return "Wallaby " + run.text;
        }

        public scala.collection.immutable.Map metrics() {
            if (metrics == null) {
                SparkContext context = run.plans.rdds.context();
                scala.collection.immutable.Map made = (scala.collection.immutable.Map) Map$.MODULE$.empty();
                made = with(made, "numOutputRows", SQLMetrics$.MODULE$.createMetric(context, "number of output rows"));
                made = with(made, "dataSize", SQLMetrics$.MODULE$.createSizeMetric(context, "data size", -1L));
                made = with(made, "time", SQLMetrics$.MODULE$.createTimingMetric(context, "time in the TaskManagers", -1L));
                made = with(made, LOSSES, SQLMetrics$.MODULE$.createMetric(context, "lost TaskManagers recovered from"));
                metrics = made;
            }
            return metrics;
        }

        private static scala.collection.immutable.Map with(
            scala.collection.immutable.Map metrics, String name, SQLMetric metric) {
            return (scala.collection.immutable.Map) metrics.updated(name, metric);
        }

        /** Tell this thread's execution what has run: `figures` are those that Python returns. */
        public synchronized void tell(Object[] figures) {
            String execution = run.plans.rdds.context().getLocalProperty(KeptRdds.EXECUTION);
            if (figures == null || figures[1] == null || execution == null || execution.equals(told)
                || ((Number) figures[2]).longValue() < 0) {
                return;
            }
            told = execution;
            String[] names = new String[] {"numOutputRows", "dataSize", "time", LOSSES};
            for (int at = 0; at < names.length; at++) {
                post(names[at], ((Number) figures[2 + at]).longValue());
            }
        }

        /** A TaskManager was lost while the rows were read. */
        synchronized void lose() {
            if (told != null) {
                post(LOSSES, 1);
            }
        }

        private void post(String name, long more) {
            SQLMetric metric = (SQLMetric) metrics().apply(name);
            metric.set(more);
            SQLMetrics$.MODULE$.postDriverMetricUpdates(run.plans.rdds.context(), told, one(metric));
        }

        public RDD doExecute() {
            return run.execute(this);
        }

        /** Spark serializes some nodes to executors with everything below them, although it needs only their columns. */
        protected Object writeReplace() {
            return new ProjectExec(output, new UnionExec((Seq) Nil$.MODULE$));
        }

        public TreeNode withNewChildrenInternal(IndexedSeq children) {
            return this;
        }

        public QueryPlan doCanonicalize() {
            return new Exec(run, (Seq) Nil$.MODULE$);
        }

        public int productArity() {
            return 2;
        }

        public Object productElement(int n) {
            return n == 0 ? (Object) run : (Object) output;
        }

        public boolean canEqual(Object other) {
            return other instanceof Exec;
        }

        public boolean equals(Object other) {
            return other instanceof Exec && ((Exec) other).run == run && ((Exec) other).output.equals(output);
        }

        public int hashCode() {
            return System.identityHashCode(run);
        }
    }

    /** Rows of a query that are kept until they are released, as a Spark table. */
    public static class Relation extends LogicalPlan implements LeafNode, MultiInstanceRelation {
        final Run run;
        private final Seq output;

        public Relation(Run run, Seq output) {
            this.run = run;
            this.output = output;
        }

        public Seq output() {
            return output;
        }

        public Seq children() {
            return (Seq) Nil$.MODULE$;
        }

        public TreeNode withNewChildrenInternal(IndexedSeq children) {
            return this;
        }

        public LogicalPlan newInstance() {
            return new Relation(run, fresh(output));
        }

        public Statistics computeStats() {
            if (run.bytes < 0) {
                return run.plan.stats();
            }
            return new Statistics(
                new BigInt(BigInteger.valueOf(Math.max(run.bytes, 1))), Option.apply(new BigInt(BigInteger.valueOf(run.rows))),
                run.plan.stats().attributeStats(), false);
        }

        public String simpleString(int maxFields) {
            return "Wallaby " + run.text;
        }

        public int productArity() {
            return 2;
        }

        public Object productElement(int n) {
            return n == 0 ? (Object) run : (Object) output;
        }

        public boolean canEqual(Object other) {
            return other instanceof Relation;
        }

        public boolean equals(Object other) {
            return other instanceof Relation && ((Relation) other).run == run
                && ((Relation) other).output.equals(output);
        }

        public int hashCode() {
            return System.identityHashCode(run);
        }

        public QueryPlan doCanonicalize() {
            return new Relation(run, (Seq) Nil$.MODULE$);
        }
    }
}
