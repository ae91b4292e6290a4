package wallaby;

import java.math.BigInteger;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkThrowable;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.analysis.MultiInstanceRelation;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.QueryPlan;
import org.apache.spark.sql.catalyst.plans.logical.LeafNode;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Statistics;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.ProjectExec;
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

/**
 * The nodes in Spark's plans that stand for sub-plans in the TaskManagers.
 *
 * They exist only in the driver. When Spark executes such a node, Python runs the sub-plan (PartRun.java) and returns a plan
 * of Spark's own classes that reads its rows (PartRows.java). So nothing runs while a query is planned or explained, and
 * executors need none of our classes.
 */
public class KeptPlans {
    /** A local property: Spark alone runs what this thread plans. */
    public static final String BYPASS = "spark.wallaby.bypass";

    public final KeptRdds rdds;
    /** Starts a run. */
    Function start;

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

    /** A Wallaby error on its way through Spark to the caller of an action; error_conversion.py restores it in Python. */
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
        private final transient PartRun run;
        private final Seq output;
        private static final String LOSSES = "losses";
        private transient scala.collection.immutable.Map metrics = null;
        /** The execution that was told the metrics. Spark adds up what it is told. */
        private transient String told = null;

        public Exec(PartRun run, Seq output) {
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
        final PartRun run;
        private final Seq output;

        public Relation(PartRun run, Seq output) {
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
