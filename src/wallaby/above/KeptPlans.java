package wallaby;

import java.lang.ref.WeakReference;
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
 * The nodes of Spark's plans that stand for sub-plans which run in the TaskManagers.
 *
 * They exist in the driver only. When such a node is executed, Python runs the sub-plan and answers with a plan of Spark's
 * own classes that reads its rows. So nothing runs while a query is planned or explained, and executors need no class of
 * ours.
 */
public class KeptPlans {
    private static final String KEPT_RESULT = "WALLABY_KEPT_RESULT";

    public final KeptRdds rdds;
    /** Starts a sub-plan, by its id. */
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

    /** The same columns with ids of their own. */
    public static Seq fresh(Seq output) {
        List made = new ArrayList();
        scala.collection.Iterator columns = output.iterator();
        while (columns.hasNext()) {
            made.add(((Attribute) columns.next()).newInstance());
        }
        return scala.jdk.javaapi.CollectionConverters.asScala(made).toSeq();
    }

    /** Plans DataFrames over rows that stay. */
    public static class Strategy extends SparkStrategy {
        public Seq apply(LogicalPlan plan) {
            if (plan instanceof Relation) {
                return one(new Exec(((Relation) plan).run, plan.output()));
            }
            return (Seq) Nil$.MODULE$;
        }

        /** One of them is enough for a session, however many engines it has had. */
        public boolean equals(Object other) {
            return other instanceof Strategy;
        }

        public int hashCode() {
            return Strategy.class.hashCode();
        }
    }

    /** A sub-plan that runs here: once, however many nodes stand for it and however often they are executed. */
    public static class Run {
        final KeptPlans plans;
        public final LogicalPlan plan;
        final String id;
        final String text;
        /** Do its rows stay until they are released by name? */
        public boolean stays = false;
        volatile long rows = -1;
        volatile long bytes = -1;
        private WeakReference rdd = new WeakReference(null);
        /** Rows that stay are read again by whoever executes the run again. */
        private RDD held = null;
        private String kept = null;
        private Object[] figures = null;

        public Run(KeptPlans plans, LogicalPlan plan, String id, String text) {
            this.plans = plans;
            this.plan = plan;
            this.id = id;
            this.text = text;
            plans.rdds.watch(this, id);
        }

        public String id() {
            return id;
        }

        synchronized RDD execute(Exec node) {
            if (plans.rdds.isForgotten(id)) {
                throw new WallabyException(KEPT_RESULT,
                    "The rows of this DataFrame were released by unpersist. Make the DataFrame anew.", null);
            }
            RDD there = (RDD) rdd.get();
            if (plans.rdds.isClosed() && (there == null || kept != null)) {
                throw new WallabyException(KEPT_RESULT,
                    "The engine that ran a part of this query is closed. Make the DataFrame anew.", null);
            }
            if (there == null) {
                there = begin();
            }
            node.tell(figures);
            return there;
        }

        private RDD begin() {
            Object[] answer = ((List) plans.start.apply(id)).toArray();
            if (answer[0] instanceof String) {
                throw new WallabyException((String) answer[0], (String) answer[1], (String) answer[2]);
            }
            RDD made = ((SparkPlan) answer[0]).execute();
            kept = (String) answer[1];
            figures = answer;
            if (kept != null) {
                rows = ((Number) answer[2]).longValue();
                bytes = ((Number) answer[3]).longValue();
                if (stays) {
                    held = made;
                    plans.rdds.stay(id, kept, made);
                } else {
                    plans.rdds.hold(made, kept, bytes);
                }
            }
            rdd = new WeakReference(made);
            return made;
        }
    }

    /** An error of ours on its way through Spark to whoever called the action; thrown.py makes it one of Python's again. */
    public static class WallabyException extends RuntimeException implements SparkThrowable {
        private final String condition;
        private final String what;
        private final String written;

        /** `written` is the whole error as text, if Python raised it. */
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
        private transient scala.collection.immutable.Map metrics = null;

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
                made = with(made, "losses", SQLMetrics$.MODULE$.createMetric(context, "lost TaskManagers recovered from"));
                metrics = made;
            }
            return metrics;
        }

        private static scala.collection.immutable.Map with(
            scala.collection.immutable.Map metrics, String name, SQLMetric metric) {
            return (scala.collection.immutable.Map) metrics.updated(name, metric);
        }

        void tell(Object[] figures) {
            String execution = run.plans.rdds.context().getLocalProperty(KeptRdds.EXECUTION);
            if (figures == null || figures[1] == null || execution == null || ((Number) figures[2]).longValue() < 0) {
                return;
            }
            String[] names = new String[] {"numOutputRows", "dataSize", "time", "losses"};
            List told = new ArrayList();
            for (int at = 0; at < names.length; at++) {
                SQLMetric metric = (SQLMetric) metrics().apply(names[at]);
                metric.set(((Number) figures[2 + at]).longValue());
                told.add(metric);
            }
            SQLMetrics$.MODULE$.postDriverMetricUpdates(
                run.plans.rdds.context(), execution, scala.jdk.javaapi.CollectionConverters.asScala(told).toSeq());
        }

        public RDD doExecute() {
            return run.execute(this);
        }

        /** Some nodes of Spark's travel to executors with all that is below them, for their columns alone. */
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

    /** The rows of a query that stay until they are released, as a table of Spark's. */
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
